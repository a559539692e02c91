# When a rank fails, a screen within 2 s says which and how, what each rank does,
# what the library found, and what to try.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
roles=$RADDLE_BUILD/tests/cli/roles

# shown LINE: of the screen, as a pattern for a whole line.
shown()
{
    grep -qE -e "^$1\$" err || fail "no line like '$1'"
}

head='  rank   process  state.*'

# Rank 2 is shown first, then who ended badly, then the rest.
run -n 4 sh -c '[ $RANK != 2 ] || exit 5; [ $RANK != 3 ] || { sleep 0.3; exit 6; }'
is status $status 5
shown "raddle run: rank 2 failed: exit status 5; 0\.[0-9] s later the ranks are:"
shown "$head"
is rows "$(grep -oE '^ +[0-9]+ +[0-9]+ +exit status [0-9]' err |
    awk '{ print $1, $5 }' | paste -sd ,)" "2 5,3 6,0 0,1 0"
shown "  to try: .*"
is "the last line" "$(tail -n 1 err)" "raddle run: rank 2 failed first: exit status 5"

# Whoever still runs is shown while it runs.
: >err
begin -n 4 --grace 60 sh -c '[ $RANK != 3 ] || exit 7; [ $RANK != 1 ] || kill -STOP $$
    exec sleep 60'
until_true 10 grep -q "to try" err
within_now=$(((${EPOCHREALTIME/[^0-9]/} - began) / 1000))
[ $within_now -lt 4000 ] || fail "the screen took $within_now ms"
shown " +3 +[0-9]+ +exit status 7"
shown " +1 +[0-9]+ +stopped"
shown " +0 +[0-9]+ +running, has not joined"
is "who comes first" "$(sed -nE 's/^ +([0-9]+) +[0-9]+ .*/\1/p' err | paste -sd ,)" 3,1,0,2
kill -INT $launcher
end
is status $status 7
is screens "$(grep -c 'to try' err)" 1
nothing_is_left

# Of many ranks the most telling, and a count of the others.
run -n 40 sh -c '[ $RANK != 33 ] || kill -KILL $$'
is status $status 137
shown " +33 +[0-9]+ +killed by signal 9 \(Killed\)"
shown "  and 24 more ranks: .*"
[ "$(wc -l <err)" -le 24 ] || fail "the screen has $(wc -l <err) lines"
shown "  to try: somebody, or the kernel for want of memory.*"

# The library's sentence, where it has one.
run -n 4 "$roles" rank_0_sums_two_numbers_more
is status $status 1
shown " +0 +[0-9]+ +exit status 1 +all_reduce\(409600 float32\) #1 .*\(RDL_MISMATCH\).*"
shown "  verdict: .*409600.*409598.*"
shown "  to try: compare what the ranks that differ call.*"
nothing_is_left

# Ranks that do not agree while the job starts have called nothing.
run -n 3 sh -c '[ $RANK != 1 ] || export RADDLE_CHECK=strict
    exec "$0" rank_0_sums_two_numbers_more' "$roles"
is status $status 1
shown "  verdict: .*RADDLE_CHECK.* must be the same on all ranks"
shown "  to try: give all ranks the same environment.*"
nothing_is_left

RADDLE_TIMEOUT=0.5 run -n 4 --grace 0.1 "$roles" rank_2_stops_before_the_sum
is status $status 1
shown " +2 +[0-9]+ +stopped +barrier #1 on the world \[0,1,2,3\], done [0-9.]+ s ago.*"
shown " +3 +[0-9]+ +exit status 1 +all_reduce\(8 float32\) #2 on the world .*\(RDL_TIMEOUT\).*"
shown "  to try: rank 2 was stopped, by a signal or a debugger.*"
shown "  verdict: all_reduce #2 on the world .* waiting for rank 2; rank 2 is stopped \(SIGSTOP or a debugger\)"
nothing_is_left

# No screen where the user ended the job, nothing was started, or there is one rank.
run -n 1 sh -c 'exit 3'
is "standard error" "$(cat err)" "raddle run: rank 0 failed first: exit status 3"
begin -n 2 sleep 60
until_true 10 eval '[ "$(marked | wc -l)" -eq 4 ]'
kill -TERM $launcher
end
is "standard error" "$(grep -c . err)" 1
run -n 3 /etc/passwd
is "lines" "$(grep -c . err)" 1
