# Rank 3 exits with 7, rank 1 blocks SIGTERM and computes for ever: the job ends
# with 7 within 10 s, rank 3 was first, and nothing is left, no zombie either.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

program='
[ $RANK != 3 ] || exit 7
trap "echo got TERM; exit 0" TERM
[ $RANK != 1 ] || trap "" TERM
while :; do :; done'

run -n 4 bash -c "$program"
is status $status 7
has err "rank 3 failed first: exit status 7; 3 others were still running"
within 6900 10000
is "who was asked to end" "$(sort out)" $'[0] got TERM\n[2] got TERM'
nothing_is_left

# With another grace period; also one that was stopped.
run -n 4 --grace 0.5 bash -c '[ $RANK != 3 ] || exit 7; kill -STOP $$'
is status $status 7
within 2400 4000
nothing_is_left
run -n 4 --grace 0 bash -c "$program"
is status $status 7
within 1900 3500
nothing_is_left
