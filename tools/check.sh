# shellcheck shell=bash
# The arms of ./dev check. Sourced by ./dev.
#
# Whatever is checked becomes one line of $results: passed, failed or skipped,
# the arm, the name, and why. An arm prints one line; what failed shows below it.
# SPDX-License-Identifier: BSD-3-Clause

all_arms=(quick tsan asan procs fuzz mutants aarch64 parity torch install lint)
results=
filter=

source tools/lint.sh
source tools/mutants.sh

# record passed|failed|skipped NAME [WHY]
record()
{
    printf '%s\t%s\t%s\t%s\n' "$1" "$arm" "$2" "${3:-}" >>"$results"
}

# What goes under the arm's line: what failed, and how.
show()
{
    cat >>"$report"
}

# How far the arm is, on its own line.
step()
{
    if [ -t 1 ]; then
        printf '\r\033[K%-9s%s ...' "$arm" "$1"
    elif [ "$step_last" != "$1" ]; then
        printf '%s%s' "${step_last:+, }" "$1"
        step_last=$1
    fi
}

# A step that is worth showing to who waits, but not in a log.
detail()
{
    [ ! -t 1 ] || step "$1"
}

count()
{
    awk -F '\t' -v status="$1" -v arm="${2:-}" \
        '$1 == status && (arm == "" || $2 == arm) { n++ } END { print n + 0 }' \
        "$results"
}

# Configures and builds a preset for the arm; a failure is recorded.
build_for_arm()
{
    step "building $1"
    if ! build_quietly "$@"; then
        record failed "build of $1" "${*:3}"
        errors_of "$2" | show
        return 1
    fi
}

# Shows how many tests have ended to who waits.
count_tests()
{
    local line

    while read -r line; do
        if [[ $line =~ ^([0-9]+/[0-9]+)\ Test ]]; then
            detail "testing ${BASH_REMATCH[1]}"
        fi
    done
}

# From ctest's JUnit file, and its log for how a test ended.
read_tests()
{
    awk -v arm="$arm" -v results="$results" -f tools/junit.awk "$1" "$2" | show
}

# test_preset PRESET [CTEST-ARGUMENT ...]: builds it and runs its tests.
test_preset()
{
    local preset=$1 junit=$PWD/build/check/$arm.xml log=build/check/$arm.log
    local before after status=0
    shift

    build_for_arm "$preset" "build/check/$arm.build.log" || return 0
    step testing
    before=$(wc -l <"$results")
    rm -f "$junit"
    calm_addresses "$preset"
    "${steady[@]}" ctest --test-dir "build/$preset" -j "$jobs" \
        --output-junit "$junit" --test-output-size-passed 65536 \
        ${filter:+-R "$filter"} "$@" 2>&1 </dev/null | tee "$log" |
        count_tests || status=$?
    [ -e "$junit" ] && read_tests "$log" "$junit"
    after=$(wc -l <"$results")
    if [ $status -ne 0 ] && [ "$(count failed "$arm")" -eq 0 ]; then
        record failed ctest "exit status $status"
        tail -20 "$log" | show
    elif [ "$before" -eq "$after" ] && [ -z "$filter" ] && [ "$arm" != fuzz ]; then
        record failed ctest "found no tests"
    fi
}

# The labels of tests that stand beside their code, for ctest -L.
unit_labels()
{
    echo "^($(grep -v '^#' docs/layers.txt | paste -sd '|')|harness)$"
}

arm_quick()
{
    test_preset debug -LE '^(soak|install|fuzz|parity)$'
}

arm_tsan()
{
    test_preset tsan -LE '^(soak|install|fuzz|cli|parity)$'
}

arm_asan()
{
    test_preset asan -LE '^(soak|install|fuzz|parity)$'
}

arm_procs()
{
    RADDLE_TEST_RANKS=processes test_preset release -LE '^(soak|install|fuzz|parity)$'
}

arm_fuzz()
{
    test_preset asan -L '^fuzz$'
}

arm_mutants()
{
    catch_mutants
}

arm_aarch64()
{
    test_preset aarch64 -L "$(unit_labels)"
}

# Against PyTorch, where it can be had.
arm_parity()
{
    step 'making an environment of Python'
    if ! python_with_torch; then
        record skipped environment "pip could not install PyTorch; see $torch_log"
        return 0
    fi
    RADDLE_PYTHON=$PWD/$torch_python test_preset release -L '^parity$'
}

# The backend of PyTorch's: our tests of it, then a part of PyTorch's own suite on it and
# on gloo. Under RADDLE_SOAK=1 the long forms too, and all of the suite.
arm_torch()
{
    step 'making an environment of Python'
    if ! python_with_torch; then
        record skipped environment "pip could not install PyTorch; see $torch_log"
        return 0
    fi
    build_for_arm release build/check/torch.build.log || return 0
    step testing
    test_with_pytest python/tests
    test_with_pytest tests/torch
    step "PyTorch's own suite"
    test_with_upstream
}

# Runs Python as the arm's programs do: with the package and the library of this tree.
# Each test's result becomes a line of $results.
python_of_arm()
{
    OMP_NUM_THREADS=1 PYTHONPATH=$PWD/python:$PWD/tools PYTHONDONTWRITEBYTECODE=1 \
        RADDLE_BUILD=$PWD/build/release RADDLE_RESULTS=$results RADDLE_ARM=$arm \
        RADDLE_REPORT=$PWD/$report "$PWD/$torch_python" "$@" </dev/null
}

# test_with_pytest FOLDER
test_with_pytest()
{
    local log=build/check/$arm.${1//\//-}.log status=0 chosen='not soak'

    [ "${RADDLE_SOAK:-}" != 1 ] || chosen=
    python_of_arm -m pytest -p pytest_results -p no:cacheprovider --rootdir=. -q \
        -m "$chosen" ${filter:+-k "${filter//|/ or }"} "$1" >"$log" 2>&1 || status=$?
    # 1: tests failed, each of which is a line by now. 5: none has such a name.
    if [ $status -gt 1 ] && ! { [ $status -eq 5 ] && [ -n "$filter" ]; }; then
        record failed "pytest $1" "exit status $status; see $log"
        tail -20 "$log" | show
    fi
}

# On 2 ranks every eighth test, which is what there is time for.
test_with_upstream()
{
    local log=build/check/$arm.upstream.log status=0 chosen=(-n 2 -s 1/8)

    [ "${RADDLE_SOAK:-}" != 1 ] || chosen=()
    [ -z "$filter" ] || chosen=(-n 2 -k "$filter")
    python_of_arm tests/torch/upstream --results "$results" "${chosen[@]}" \
        >"$log" 2>&1 || status=$?
    if [ $status -gt 1 ]; then
        record failed upstream "exit status $status; see $log"
    fi
    [ $status -eq 0 ] || grep -E 'NOT EXPECTED|^Traceback|^[A-Za-z]*Error' "$log" | show
}

arm_install()
{
    test_preset release -L '^install$'
}

arm_lint()
{
    lint
}

packages_of()
{
    case $1 in
    aarch64) echo arm ;;
    lint) echo clang lint docs python ;;
    parity | torch) echo python ;;
    esac
}

run_arm()
{
    local start=$SECONDS
    arm=$1
    report=build/check/$arm.report
    step_last=
    : >"$report"

    if need build check $(packages_of "$arm"); then
        [ -t 1 ] || printf '%-9s' "$arm"
        "arm_$arm"
    else
        printf '%-9s' "$arm"
        record failed packages "could not install what the arm needs"
    fi
    if [ -t 1 ]; then
        printf '\r\033[K%-9s' "$arm"
    elif [ -n "$step_last" ]; then
        printf ': '
    fi
    printf '%d passed, %d failed, %d skipped, %d s\n' "$(count passed "$arm")" \
        "$(count failed "$arm")" "$(count skipped "$arm")" $((SECONDS - start))
    sed 's/^/    /' "$report"
}

# Names, with why, of all that was skipped or failed.
list_results()
{
    awk -F '\t' -v status="$1" '
        $1 == status { printf "%-8s %s: %s%s\n", status, $2, $3, $4 == "" ? "" : ": " $4 }
    ' "$results"
}

summary()
{
    list_results skipped
    list_results failed
    printf '%d passed, %d failed, %d skipped\n' "$(count passed)" \
        "$(count failed)" "$(count skipped)"
    [ "$(count failed)" -eq 0 ]
}

is_arm()
{
    [[ " ${all_arms[*]} " == *" $1 "* ]]
}

start_results()
{
    mkdir -p build/check
    results=$PWD/build/check/results.tsv
    : >"$results"
}

# check [--all] [ARM ...] [NAME ...]
check()
{
    local arms=() word

    for word; do
        if [ "$word" = --all ]; then
            arms=("${all_arms[@]}")
        elif is_arm "$word"; then
            arms+=("$word")
        else
            filter=${filter:+$filter|}$word
        fi
    done
    [ ${#arms[@]} -gt 0 ] || arms=(quick)
    start_results
    for word in "${arms[@]}"; do
        run_arm "$word"
    done
    if [ ! -s "$results" ]; then
        echo "./dev check: no test's name matches $filter; arms are ${all_arms[*]}" >&2
        return 1
    fi
    summary
}

# The tests that are only long, then fuzzing, then all others in their long form.
arm_soak()
{
    export RADDLE_SOAK=1
    test_preset release -LE '^(install|fuzz|parity)$'
}

# fuzz_target PROGRAM SECONDS: its log and its exit status below build/check; what it
# found and what it crashed with below build/fuzz/found.
fuzz_target()
{
    local name=${1##*/} status=0

    mkdir -p "build/fuzz/found/$name"
    "$1" -max_total_time="$2" -artifact_prefix="build/fuzz/found/$name-" \
        "build/fuzz/found/$name" "tests/fuzz/$name.corpus" \
        >"build/check/fuzz-$name.log" 2>&1 </dev/null || status=$?
    echo $status >"build/check/fuzz-$name.status"
}

# As many at a time as there are cores.
fuzz_targets()
{
    local seconds=$1 target
    shift

    for target; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
            wait -n || true
        done
        fuzz_target "$target" "$seconds" &
    done
    wait
}

record_fuzzing()
{
    local name

    for name; do
        name=${name##*/}
        if [ "$(cat "build/check/fuzz-$name.status")" -eq 0 ]; then
            record passed "$name" "$(grep '^Done ' "build/check/fuzz-$name.log")"
        else
            record failed "$name" "see build/fuzz/found"
            tail -40 "build/check/fuzz-$name.log" | show
        fi
    done
}

arm_fuzzing()
{
    local targets=() target seconds=${RADDLE_FUZZ_SECONDS:-600}

    need clang fuzz
    build_for_arm fuzz build/check/fuzzing.build.log || return 0
    for target in build/fuzz/fuzz/*; do
        [ -f "$target" ] && [[ ${target##*/} =~ $filter ]] && targets+=("$target")
    done
    if [ ${#targets[@]} -eq 0 ]; then
        record failed "$filter" "no fuzz target has such a name"
        return 0
    fi
    step "${#targets[@]} targets, $seconds s each"
    fuzz_targets "$seconds" "${targets[@]}"
    record_fuzzing "${targets[@]}"
}

# soak [NAME ...], or soak fuzz [TARGET ...] for the fuzzing alone
soak()
{
    local fuzz_alone=false

    if [ "${1:-}" = fuzz ]; then
        fuzz_alone=true
        shift
    fi
    filter=$(IFS='|' && echo "$*")
    start_results
    $fuzz_alone || run_arm soak
    $fuzz_alone || RADDLE_SOAK=1 run_arm torch
    if $fuzz_alone || [ -z "$filter" ]; then
        run_arm fuzzing
    fi
    summary
}
