# shellcheck shell=bash
# The arm lint. Each check is a function that prints what is wrong; it passes if
# it prints nothing and succeeds. Sourced.
# SPDX-License-Identifier: BSD-3-Clause

checks=(
    gcc_compiles_without_warnings
    clang_compiles_without_warnings
    clang_tidy_is_silent
    formatting_is_what_clang_format_makes
    includes_go_down_the_layers
    exported_symbols_are_the_public_functions
    public_functions_have_a_man_page
    man_pages_render
    public_headers_are_c99_and_c11
    public_headers_are_cpp17
    private_headers_stand_alone
    the_library_has_no_mutable_globals
    snippets_compile
    files_name_their_licence
    no_file_holds_a_forbidden_word
    scripts_parse
    python_files_are_clean
)

lint()
{
    local check

    mkdir -p build/check/lint
    step checking
    for check in "${checks[@]}"; do
        [[ $check =~ ${filter:-.} ]] || continue
        detail "${check//_/ }"
        if "$check" >"build/check/lint/$check" 2>&1 &&
            [ ! -s "build/check/lint/$check" ]; then
            record passed "$check"
        else
            record failed "$check"
            { echo "--- $check" && head -60 "build/check/lint/$check"; } | show
        fi
    done
}

compiles()
{
    local log=build/check/lint/$1.build.log

    build_quietly "$1" "$log" && return
    errors_of "$log"
    return 1
}

# For the checks that look at what was built.
must_compile()
{
    compiles "$1" >/dev/null && return
    echo "$1 does not build"
    return 1
}

gcc_compiles_without_warnings()
{
    compiles release
}

clang_compiles_without_warnings()
{
    compiles debug-clang
}

clang_tidy_is_silent()
{
    must_compile debug-clang || return
    # Its long traces of how it could happen stay in the log.
    c_files | grep '\.c$' | compiled_files |
        xargs -r -P "$jobs" -n 4 clang-tidy-14 -p build/debug-clang --quiet \
            2>/dev/null >build/check/lint/clang-tidy.log && return
    grep -A 2 ' error: ' build/check/lint/clang-tidy.log
}

# Those of the files that are part of the build.
compiled_files()
{
    local file

    while read -r file; do
        grep -q "\"file\": \".*/$file\"" build/debug-clang/compile_commands.json &&
            echo "$file"
    done
    return 0
}

formatting_is_what_clang_format_makes()
{
    local file

    c_files | while read -r file; do
        clang-format-14 "$file" | diff -u --label "$file" \
            --label "$file after ./dev format" "$file" -
    done
    return 0
}

includes_go_down_the_layers()
{
    c_files | xargs awk -f tools/layers.awk docs/layers.txt
}

# Those declared RDL_API or RDL_CALL, of the given headers.
public_functions()
{
    awk -f tools/functions.awk "$@" | LC_ALL=C sort -u
}

# In release, which has no seams for faults.
exported_symbols_are_the_public_functions()
{
    local exported=build/check/lint/exported declared=build/check/lint/declared

    must_compile release || return
    nm -D --defined-only build/release/libraddle.so | awk '{ print $3 }' |
        LC_ALL=C sort -u >$exported
    public_functions include/raddle/*.h >$declared
    LC_ALL=C comm -23 $declared $exported |
        sed 's/$/ is declared and not in the library/'
    LC_ALL=C comm -13 $declared $exported |
        sed 's/$/ is exported and in no public header/'
}

public_functions_have_a_man_page()
{
    local header name page

    for header in include/raddle/*.h; do
        name=${header##*/}
        page=docs/man/raddle-${name%.h}.3.md
        if [ ! -e "$page" ]; then
            echo "$header has no page $page"
            continue
        fi
        public_functions "$header" | while read -r name; do
            grep -qw "$name" "$page" || echo "$page does not mention $name"
        done
    done
}

man_pages_render()
{
    source tools/docs.sh
    rm -rf build/check/man
    mkdir -p build/check/man
    render_man_pages build/check/man
    find build/check/man -type f -size -100c |
        sed 's/$/ came out empty/'
}

strict=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only)

# By both compilers, without _GNU_SOURCE: programs need not define it.
public_headers_are_c99_and_c11()
{
    local header compiler standard

    for header in include/raddle/*.h; do
        for compiler in gcc clang-14; do
            for standard in c99 c11; do
                $compiler -std=$standard "${strict[@]}" -Iinclude -x c \
                    "$header" 2>&1 | grep -v 'pragma once'
            done
        done
    done
    return 0
}

public_headers_are_cpp17()
{
    local header

    for header in include/raddle/*.h; do
        clang++-14 -std=c++17 "${strict[@]}" -Iinclude -x c++ "$header"
    done
}

private_headers_stand_alone()
{
    find src tests llama -name '*.h' | while read -r header; do
        gcc -std=c11 -D_GNU_SOURCE -DRDL_FAULTS "${strict[@]}" -Wno-unused-function \
            -Iinclude -Isrc -Itests -I. -x c "$header"
    done
    return 0
}

# Ranks are objects, several in one process. Thread-local state is allowed.
the_library_has_no_mutable_globals()
{
    must_compile release || return
    objdump -t build/release/libraddle_internal.a | awk '
        /file format/ { file = $1 }
        / O / && /[ \t](\.bss|\.data|COMMON)/ && !/\.data\.rel\.ro/ {
            print file " holds the mutable " $NF
        }'
}

# The C programs in Markdown: every block of C in README.md, elsewhere those with
# a main().
snippets_compile()
{
    local folder=build/check/lint/snippets file

    rm -rf $folder
    mkdir -p $folder
    find . -name '*.md' -not -path './build/*' -not -path './.*' |
        LC_ALL=C sort | xargs -r awk -v folder=$folder -f tools/snippets.awk
    for file in "$folder"/*.c; do
        [ -e "$file" ] || continue
        gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude \
            "$file"
    done
}

# All files that we wrote, one a line.
our_files()
{
    find . -type f -not -path './build/*' -not -path './.git/*' \
        -not -path './.venv/*' -not -path './python/build/*' -not -name .git -not -path '*.corpus/*' |
        sed 's|^\./||' | LC_ALL=C sort
}

files_name_their_licence()
{
    our_files | grep -E '\.(c|h|sh|cmake|awk|py)$|^dev$|CMakeLists.txt$|^\.ci/run$' |
        xargs grep -L 'SPDX-License-Identifier: BSD-3-Clause' |
        sed 's/$/ has no SPDX line/'
    return 0
}

# Spelled apart, as this file is searched too.
no_file_holds_a_forbidden_word()
{
    our_files | xargs grep -nIwE 'TO''DO|FIX''ME|X''XX' | cut -c 1-200
    our_files | xargs grep -nIE '(^|[^[:alnum:]_.$}/-])/(work|root|home)/|/tmp/ba''sh' |
        cut -c 1-200
    return 0
}

scripts_parse()
{
    local file

    our_files | grep -E '\.sh$|^dev$|^\.ci/run$' | while read -r file; do
        bash -n "$file"
    done
    return 0
}

# Where the checker cannot be had, that they parse.
python_files_are_clean()
{
    local files

    files=$(our_files | grep '\.py$')
    if python_with_ruff; then
        "$torch_python" -m ruff check --quiet --no-cache --isolated --line-length 100 \
            --target-version py311 --select E4,E7,E9,E501,F,W $files
    else
        python3 -c 'import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name).read(), name)' $files
    fi
}
