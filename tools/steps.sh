# shellcheck shell=bash
# Steps that the verbs of ./dev share. Sourced, in the folder of ./dev.
# SPDX-License-Identifier: BSD-3-Clause

# All our C files, one a line.
c_files()
{
    local folder

    for folder in include src cli examples llama guard tests bench; do
        [ -d $folder ] || continue
        find $folder -name '*.[ch]'
    done | LC_ALL=C sort
}

# The packages of these sets that are not installed.
missing_packages()
{
    local sets=" $* " wanted=() i present

    for ((i = 0; i < ${#packages[@]}; i += 3)); do
        [[ $sets == *" ${packages[i]} "* ]] && wanted+=("${packages[i + 1]}")
    done
    present=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' \
        "${wanted[@]}" 2>/dev/null || true)
    for i in "${wanted[@]}"; do
        grep -qx "$i installed" <<<"$present" || echo "$i"
    done
}

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "./dev: this needs root or sudo: $*" >&2
        return 1
    fi
}

say_packages()
{
    local i

    for ((i = 0; i < ${#packages[@]}; i += 3)); do
        [[ " $* " == *" ${packages[i + 1]} "* ]] &&
            printf '  %-22s %s\n' "${packages[i + 1]}" "${packages[i + 2]}"
    done
    return 0
}

# need SET ...: installs what is missing of these sets of packages.
need()
{
    local missing log=build/packages.log

    if ! command -v dpkg-query >/dev/null; then
        return 0 # not Debian: the build itself says what it misses
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    mkdir -p build
    {
        echo "./dev: installing packages of Debian:"
        say_packages $missing
    } >&2
    # A fresh image has no lists, an old one may have stale ones.
    if ! { as_root apt-get -qq update && as_root env \
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
        --no-install-recommends $missing; } >$log 2>&1 </dev/null; then
        tail -20 $log >&2
        echo "./dev: could not install: " $missing >&2
        return 1
    fi
}

# ThreadSanitizer has fixed places for its shadow memory. Kernels that place
# mappings more randomly than it knows (vm.mmap_rnd_bits > 28) break it, so
# where we may, its programs run without that randomness.
steady=()
calm_addresses()
{
    steady=()
    [[ $1 == tsan* || $1 == mutants ]] || return 0
    setarch -R true 2>/dev/null && steady=(setarch -R)
    return 0
}

# build_quietly PRESET LOG [CMAKE-ARGUMENT ...]
build_quietly()
{
    local preset=$1 log=$2
    shift 2

    calm_addresses "$preset"
    cmake --preset "$preset" "$@" >"$log" 2>&1 </dev/null || return
    "${steady[@]}" cmake --build "build/$preset" -j "$jobs" >>"$log" 2>&1 </dev/null
}

# What is wrong, out of a build's log.
errors_of()
{
    grep -vE '^\[[0-9]+/[0-9]+\] [A-Z]|^-- |^Preset CMake|^  [A-Z_]+=|^$|^/[^ ]*/(cc|gcc|clang-14|[a-z0-9-]*-gcc) ' \
        "$1" | tail -60
}

# build PRESET TARGET ...: says so only where it takes time or fails.
build()
{
    local preset=$1 log=build/$1.log
    shift

    mkdir -p build
    [ -e "build/$preset/build.ninja" ] ||
        echo "./dev: building into build/$preset (the first time takes longer)" >&2
    if ! cmake --preset "$preset" >"$log" 2>&1 </dev/null ||
        ! cmake --build "build/$preset" -j "$jobs" --target "$@" \
            >>"$log" 2>&1 </dev/null; then
        errors_of "$log" >&2
        echo "./dev: the build of $preset failed; all of it: $log" >&2
        return 1
    fi
}

# A Python with PyTorch and what its tests need, made once; false if it cannot be made.
torch_python=build/venv/bin/python
torch_log=build/venv.log
python_with_torch()
{
    local wanted=(torch==2.13.0 numpy pytest expecttest)

    "$torch_python" -c 'import expecttest, numpy, pytest, torch' 2>/dev/null && return
    install_python "${wanted[@]}" && "$torch_python" -c 'import expecttest, numpy, pytest, torch'
}

# The checker of Python files, in the same place; false if it cannot be had.
python_with_ruff()
{
    "$torch_python" -m ruff --version >/dev/null 2>&1 || install_python ruff==0.17.5
}

# install_python PACKAGE ...: into an environment of our own.
install_python()
{
    mkdir -p build
    {
        { [ -x "$torch_python" ] || python3 -m venv build/venv; } &&
            "$torch_python" -m pip install --quiet "$@"
    } >"$torch_log" 2>&1 </dev/null
}
