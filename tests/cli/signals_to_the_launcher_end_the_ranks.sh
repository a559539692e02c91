# SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on; after the grace period comes
# SIGKILL; the exit status is 128 and the signal.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

# Background jobs of a script ignore SIGINT; with job control they do not.
set -m

# Says what it got; the last argument is what a rank does then.
program='
for signal in INT TERM HUP QUIT; do
    trap "echo got $signal; $1" $signal
done
echo ready
while :; do sleep 0.05; done'

# start GRACE THEN: two ranks, ready.
start()
{
    begin -n 2 --grace "$1" sh -c "$program" sh "$2"
    until_true 10 lines_are out 2
    restart_clock
}

number=([1]=HUP [2]=INT [3]=QUIT [15]=TERM)
for n in "${!number[@]}"; do
    start 5 "exit 0"
    kill -${number[n]} $launcher
    end
    is "status of ${number[n]}" $status $((128 + n))
    within 0 2000
    is "what ranks got" "$(grep got out | sort)" \
        "[0] got ${number[n]}"$'\n'"[1] got ${number[n]}"
    is "lines of ours" "$(grep -c "raddle run: ended" err)" 1
    [ ${number[n]} = QUIT ] || is "lines of ours" "$(grep -c raddle err)" 1
    has err "raddle run: ended by signal $n ("
    has err "2 of 2 ranks were still running"
    nothing_is_left
done

# Those who do not answer are killed.
start 1 ":"
kill -TERM $launcher
end
is status $status 143
within 950 3000
nothing_is_left

# A second SIGINT ends the grace period at once; another SIGTERM does not.
start 60 ":"
kill -TERM $launcher
sleep 0.2
kill -TERM $launcher
sleep 0.2
kill -INT $launcher
end
is status $status 143
within 350 3000
nothing_is_left

start 60 ":"
kill -INT $launcher
sleep 0.2
kill -INT $launcher
end
is status $status 130
within 150 3000

# Sent to the process group, as terminals do: once for each rank, and one line.
start 2 "exit 1"
kill -INT -$launcher
end
is status $status 130
is "what ranks got" "$(grep got out | sort)" $'[0] got INT\n[1] got INT'
has err "raddle run: ended by signal 2 (Interrupt); 2 of 2 ranks were still running"

# A rank in a group of its own gets it as well.
begin -n 2 setsid -w sh -c "$program" sh "exit 0"
until_true 10 lines_are out 2
kill -INT -$launcher
end
is status $status 130
is "what ranks got" "$(grep got out | sort)" $'[0] got INT\n[1] got INT'
nothing_is_left

# Behind a shell, programs are asked to end too, and given time for it.
begin -n 2 sh -c 'sh -c "$0" sh "sleep 0.3; echo saved; exit 0"; true' "$program"
until_true 10 lines_are out 2
kill -TERM $launcher
end
is status $status 143
is "what was saved" "$(grep saved out | sort)" $'[0] saved\n[1] saved'
nothing_is_left

# While a failed job is being ended, SIGINT cuts it short; the failure counts.
begin -n 2 --grace 60 sh -c 'trap "" TERM INT; [ $RANK = 0 ] || exit 9
    echo ready; while :; do sleep 0.05; done'
until_true 10 lines_are out 1
sleep 0.5
restart_clock
kill -INT $launcher
end
is status $status 9
within 0 1400
has err "rank 1 failed first: exit status 9; 1 other was still running"
nothing_is_left

# nohup: SIGHUP is ignored, and the ranks go on.
(trap '' HUP; exec "$raddle" run -n 2 sh -c 'sleep 1; echo done') >out 2>err &
launcher=$!
sleep 0.3
kill -HUP $launcher
end
is "status of nohup" $status 0
is output "$(sort out)" $'[0] done\n[1] done'

# Without job control SIGINT is ignored at the start; sent on purpose it counts.
set +m
begin -n 2 sleep 60
until_true 10 eval '[ "$(marked | wc -l)" -eq 4 ]'
kill -INT $launcher
end
is status $status 130
within 0 3000
nothing_is_left
