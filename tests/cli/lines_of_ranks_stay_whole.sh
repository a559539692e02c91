# Eight ranks print many lines to both outputs at once: each arrives, whole, once,
# with its rank in front, in the order of its rank.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

lines=3000
program='
BEGIN {
    for (i = 0; i < lines; i++) {
        text = sprintf("rank %d line %d ", rank, i)
        for (j = 0; j < i % 50; j++)
            text = text "x"
        print text "|"
        print text "|" >"/dev/stderr"
    }
    fflush()
}'

# check FILE PREFIX-OR-NOT COPIES: all lines are there and in order.
check()
{
    awk -v lines=$lines -v prefix="$2" -v copies="$3" '
        {
            if (!match($0, "rank [0-9]+ line [0-9]+ x*\\|$")) {
                print "not whole: " $0; bad++; next
            }
            before = substr($0, 1, RSTART - 1)
            split(substr($0, RSTART), word, " ")
            rank = word[2]; line = word[4]
            x = word[5]; sub(/\|/, "", x)
            if (before != (prefix ? "[" rank "] " : "") || length(x) != line % 50) {
                print "wrong: " $0; bad++
            }
            seen[rank, line]++
            if (copies == 1 && line != next_line[rank]++) {
                print "out of order: " $0; bad++
            }
        }
        bad > 10 { exit }
        END {
            for (r = 0; r < 8; r++)
                for (l = 0; l < lines; l++)
                    if (seen[r, l] != copies && bad++ < 10)
                        print "rank " r " line " l ": " seen[r, l] + 0 " times"
            exit bad > 0
        }' "$1" >&2 || fail "$1 is not right"
}

printf '%s' "$program" >program.awk
run -n 8 sh -c "exec awk -v rank=\$RANK -v lines=$lines -f program.awk"
is status $status 0
check out 1 1
check err 1 1

run -n 8 --no-prefix sh -c "exec awk -v rank=\$RANK -v lines=$lines -f program.awk"
is status $status 0
check out '' 1
check err '' 1

# Both into one file, and into one pipe with a slow reader.
"$raddle" run -n 8 sh -c "exec awk -v rank=\$RANK -v lines=$lines -f program.awk" \
    >both 2>&1 || fail "status $?"
check both 1 2
"$raddle" run -n 8 sh -c "exec awk -v rank=\$RANK -v lines=$lines -f program.awk" \
    2>&1 | (sleep 1; cat >both)
is "status with a pipe" "${PIPESTATUS[0]}" 0
check both 1 2

# Ranks are as wide as the widest.
run -n 11 sh -c 'echo $RANK'
for rank in 0 9 10; do
    grep -qxF "$(printf '[%2d] %d' $rank $rank)" out || fail "no line of rank $rank"
done
