# When ranks waited in vain, or on SIGQUIT, the native stack of those that still run
# is shown; where they may not be traced, what they wait for in the kernel.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
roles=$RADDLE_BUILD/tests/cli/roles

# Without the unwinder all are shown where the kernel has them.
unwinds=$(grep -c 'DW_FOUND:INTERNAL=1' "$RADDLE_BUILD/CMakeCache.txt")

# is_shown: rank 1 idles.
is_shown()
{
    is status $status 1
    grep -qE "^ +1 +[0-9]+ +running +barrier #1 on the world" err || fail "no row of rank 1"
    if [ "$unwinds" -gt 0 ]; then
        has err "  rank 1, its stack:"
        grep -qE "^    #[0-9]+ +(pause|__libc_pause) " err || fail "no pause in the stack"
        grep -qE "^    #[0-9]+ +rdl_test_body_rank_1_idles" err || fail "no caller of pause"
    else
        has err "  rank 1, where the kernel has it (no stack: raddle was built without libdw):"
    fi
    has err "  verdict: all_reduce #2 on the world"
    nothing_is_left
}

RADDLE_TIMEOUT=0.5 run -n 3 "$roles" rank_1_idles_instead_of_the_sum
is_shown

# Behind a shell it is the program that is shown.
RADDLE_TIMEOUT=0.5 run -n 3 sh -c '"$0" rank_1_idles_instead_of_the_sum; exit $?' "$roles"
is_shown

# Job control, since SIGQUIT is ignored in the background without it. A rank goes on after it was shown, and ends as it was asked.
set -m
begin -n 2 bash -c 'trap "echo got QUIT; exit 3" QUIT; echo ready; while :; do sleep 0.1; done'
until_true 10 lines_are out 2
kill -QUIT $launcher
end
is status $status 131
has err "raddle run: SIGQUIT came; the ranks are:"
is "ranks" "$(grep -cE '^  rank [01], ' err)" 2
is "what ranks got" "$(grep got out | sort)" $'[0] got QUIT\n[1] got QUIT'
nothing_is_left

# So may nobody trace.
RADDLE_TEST_MARK=$mark RADDLE_TIMEOUT=0.5 \
    START="'$raddle' run -n 2 '$roles' rank_1_idles_instead_of_the_sum" \
    "$roles" what_is_started_may_not_trace >out 2>err
status=$?
[ $status -ne 77 ] || { echo "tracing cannot be forbidden here: $(cat out err)"; exit 77; }
is status $status 1
has err "  rank 1, where the kernel has it (no stack: "
grep -qE "^    thread [0-9]+: " err || fail "no thread of rank 1"
[ "$unwinds" -eq 0 ] || has err "(no stack: Operation not permitted):"
nothing_is_left
