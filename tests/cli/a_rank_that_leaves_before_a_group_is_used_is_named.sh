# H12: rank 0 ends, by itself or by a signal, before the first use of a group. The
# other is told within its limit, the command names rank 0 and ends with its status,
# within 5 s, and nothing is left.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
roles=$RADDLE_BUILD/tests/cli/roles

# ends_like HOW STATUS TEXT
ends_like()
{
    HOW=$1 RADDLE_TIMEOUT=2 run -n 2 "$roles" rank_0_ends_before_the_first_use_of_a_group
    is "status of $1" $status "$2"
    within 0 5000
    has err "raddle run: rank 0 failed first: $3"
    grep -q "^\[1\] all_reduce #1 on group 'pair' \[0,1\] at [^ ]*:[0-9]*: rank 0 is gone" \
        err || fail "rank 1 does not say so"
    nothing_is_left
}

before=$(ls /dev/shm)
ends_like 86 86 "exit status 86"
# Sanitizers make an exit of a crash.
if ! grep -q sanitize <<<"$RADDLE_BUILD" && [[ $RADDLE_BUILD != *asan* ]]; then
    ends_like SIGSEGV 139 "killed by signal 11 (Segmentation fault)"
fi
ends_like SIGKILL 137 "killed by signal 9 (Killed)"
is /dev/shm "$(ls /dev/shm)" "$before"
