# `raddle dump PID` shows what the ranks of a running job did last and what they wait
# for, whichever process of the job is named, also when ranks are stopped.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
program=$RADDLE_BUILD/tests/cli/stuck

# refused STATUS TEXT ARGUMENTS: one sentence, and nothing else.
refused()
{
    local expected=$1 part=$2

    shift 2
    call dump "$@"
    is "status of dump $*" $status "$expected"
    is "lines on standard error" "$(wc -l <err)" 1
    is "standard output" "$(cat out)" ""
    has err "$part"
}

shows_wait()
{
    "$raddle" dump "$@" 2>/dev/null | grep -q 'waits for rank 2'
}

RADDLE_TEST_MARK=$mark "$raddle" run -n 3 "$program" \
    the_last_rank_idles_instead_of_the_sum >job.out 2>job.err &
launcher=$!
until_true 20 shows_wait $launcher

# By the process that the user started: all ranks, 20 calls each.
call dump $launcher
is status $status 0
is "standard error" "$(cat err)" ""
is "ranks" "$(grep -c '^rank [012]: joined, process [0-9]*, 3[01] calls$' out)" 3
is "waits" "$(grep -cE '^  in all_reduce\(1 float64, sum\) #1 on group .dp. \[0,1,2\] at sum "x"\.c:2: waits for rank [0-9], since [0-9.]* s$' out)" 2
is "barriers" "$(grep -cE '^ +[0-9.]+ +-[0-9.]+ +[0-9]+  barrier #[0-9]+ on the world \[0,1,2\] at step\.c:1: done( after [0-9.]+ s)?$' out)" 58
rank_pid=$(sed -n 's/^rank 1: joined, process \([0-9]*\).*/\1/p' out)

# By a rank, of one rank, and fewer.
call dump --rank 2 --last 3 "$rank_pid"
is status $status 0
is lines "$(wc -l <out)" 5
has out "barrier #30 on the world [0,1,2] at step.c:1: done"
call dump --rank=1 --last=1 "$rank_pid"
is lines "$(wc -l <out)" 4

# As JSON: an object a line, its texts quoted.
call dump --json --last 2 "$launcher"
is status $status 0
is lines "$(wc -l <out)" 9
is "ranks" "$(grep -cE '^\{"job": [0-9]+, "rank": [012], "state": "joined", "pid": [0-9]+, "calls": 3[01], "lost": 0, "reason": "", "held": ""\}$' out)" 3
is "calls that wait" "$(grep -cE '"state": "waiting", .*"peer": [0-9], "operation": "all_reduce", "dtype": "float64", "reduction": "sum", "count": 1, .*"group": "group .dp. \[0,1,2\]", .*"site": "sum \\"x\\"\.c:2", "blocks": 1\}$' out)" 2
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
for line in sys.stdin: json.loads(line)' <out || fail "no JSON"
fi

# Of stopped ranks too.
kill -STOP "$rank_pid"
call dump --rank 1 "$rank_pid"
is status $status 0
has out "rank 1: joined, process $rank_pid, stopped, 3"
has out "waits for rank"
call dump --rank 1 --json "$rank_pid"
has out '"reason": "", "held": "stopped"}'
kill -CONT "$rank_pid"

# Of another user.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$raddle" dump "$rank_pid" >out 2>err
    is "status as another user" $? 1
    has err "belongs to user 0, and this is user 65534: Permission denied (EACCES)"
fi

refused 2 "there is no rank 3: the job's ranks are 0 to 2" --rank 3 "$rank_pid"
kill -TERM $launcher
wait $launcher
refused 1 "there is no process $launcher" $launcher
refused 1 "holds no memory of a job" $$
refused 2 "One process id is wanted, and 0 are given"
refused 2 "One process id is wanted, and 2 are given" 1 2
refused 2 "the process id is a number from 1 to 2147483647, and not '-1'" -- -1
refused 2 "the process id is a number from 1 to 2147483647, and not 'me'" me
refused 2 "--last is a number from 1" --last 0 1
refused 2 "--rank is a number from 0 to 1023, and not '1024'" --rank 1024 1
refused 2 "--rank wants a value behind it" 1 --rank
refused 2 "the nearest is '--json'" --jsno 1
nothing_is_left
