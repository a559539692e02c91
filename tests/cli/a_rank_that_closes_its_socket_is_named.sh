# A rank whose inherited socket is closed before it joins: it is told so itself, or, if it
# does not try, is shown as one that cannot join; the others are told who is missing.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
roles=$RADDLE_BUILD/tests/cli/roles

run -n 3 sh -c '[ $RANK != 1 ] || exec 3>&-; exec "$0" all_sum_a_mebibyte' "$roles"
is status $status 1
has err "RADDLE_FD=3 is not the launcher's socket; was it closed before the program started?"
has err "raddle run: rank 1 failed first: exit status 1"
grep -qE '^\[[02]\] .*rank 1 is gone while the job starts: exit status 1' err ||
    fail "the others do not say why"
nothing_is_left

RADDLE_START_TIMEOUT=0.5 run -n 3 --grace 0.1 \
    sh -c '[ $RANK != 1 ] || { exec 3>&-; exec sleep 60; }; exec "$0" all_sum_a_mebibyte' "$roles"
is status $status 1
grep -qE '^\[[02]\] .*2 of 3 joined, missing rank 1' err || fail "the others do not say who"
grep -qE '^ +1 +[0-9]+ +running, has closed its socket and cannot join' err ||
    fail "no row of rank 1"
has err "  verdict: 2 of 3 joined, missing rank 1"
nothing_is_left
