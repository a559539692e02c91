# shellcheck shell=bash
# The arm mutants: each line of tests/race/mutants.txt is a build that the tests
# must fail. A mutant that passes means that the tests are broken. Sourced.
# SPDX-License-Identifier: BSD-3-Clause

# catch_mutant DEFINITION TESTS [EVIDENCE]
catch_mutant()
{
    local mutant=$1 tests=$2 evidence=${3:-ThreadSanitizer}
    local log=build/check/mutant-$mutant.log

    build_for_arm mutants "build/check/$arm.build.log" -DRADDLE_MUTANT="$mutant" ||
        return 0
    detail "$mutant"
    calm_addresses mutants
    if "${steady[@]}" ctest --test-dir build/mutants -R "$tests" -j "$jobs" \
        --no-tests=error --stop-on-failure --output-on-failure >"$log" 2>&1; then
        record failed "$mutant" "not caught by $tests"
    elif ! grep -q "$evidence" "$log"; then
        record failed "$mutant" "$tests failed without $evidence in the output"
        tail -40 "$log" | show
    else
        record passed "$mutant"
    fi
}

catch_mutants()
{
    local mutant tests evidence

    while read -r mutant tests evidence; do
        [[ $mutant == RDL_MUTANT_* ]] || continue
        [[ "$mutant $tests" =~ ${filter:-.} ]] || continue
        catch_mutant "$mutant" "$tests" "$evidence"
    done <tests/race/mutants.txt
}
