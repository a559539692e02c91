# A killed rank, and a loss that is not finite: one sentence each, and nothing is
# left.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/train.sh"

# rank_process N: of the job that was begun.
rank_process()
{
    marked | while read -r pid; do
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null |
            grep -qx "RADDLE_RANK=$1" && echo "$pid"
    done
}

RADDLE_TEST_MARK=$mark "$raddle" train "${small[@]}" --ranks 4 --steps 100000 \
    >out 2>err &
launcher=$!
until_true 30 grep -q "step:  2" out
victim=$(rank_process 2)
kill -KILL "$victim"
began=${EPOCHREALTIME/[^0-9]/}
end
is status $status 137
within 0 12000
has err "raddle train: rank 2 failed first: killed by signal 9 (Killed)"
has err "rank 2 is gone: " # how, it may not know yet
nothing_is_left

# Rank 0 says what all ranks know; nothing more is trained.
train --lr 1e30 --ranks 2
is status $status 1
is "sentences" "$(grep -c 'not finite' err)" 1
grep -qE '^raddle train: step [23]: .* is not finite .*rank [01]; nothing was updated$' err ||
    fail "does not say step, rank and parameter"
[ "$(wc -l <out)" -le 2 ] || fail "went on training"
nothing_is_left
