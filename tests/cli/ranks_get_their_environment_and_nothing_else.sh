# Variables, descriptors, standard input, signals and limits of the ranks.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

# What is open here is not the ranks' business; neither is an outer job.
exec 7</dev/null 9>file
export RANK=77 WORLD_SIZE=99 RADDLE_FD=55 RADDLE_RANK=44 KEPT=yes
run -n 3 sh -c 'echo $RADDLE_RANK $RADDLE_WORLD_SIZE $RANK $WORLD_SIZE \
    $LOCAL_RANK $LOCAL_WORLD_SIZE $KEPT'
is status $status 0
is variables "$(sort out)" "[0] 0 3 0 3 0 3 yes
[1] 1 3 1 3 1 3 yes
[2] 2 3 2 3 2 3 yes"

run -n 2 bash -c 'for fd in {0..99}; do
        [ ! -e /proc/$$/fd/$fd ] || printf "%s " $fd; done
    [ -S /proc/$$/fd/$RADDLE_FD ] && readlink /proc/$$/fd/0'
is descriptors "$(sort out)" $'[0] 0 1 2 3 /dev/null\n[1] 0 1 2 3 /dev/null'

# Standard input is rank 0's.
printf 'first\nsecond\n' >input
"$raddle" run -n 3 cat <input >out 2>err
is "status with input" $? 0
is output "$(sort out)" $'[0] first\n[0] second'
# And nobody else holds it: its writer learns when rank 0 wants no more.
yes 2>/dev/null | "$raddle" run -n 2 sh -c '[ $RANK = 0 ] && exec head -1
    exec sleep 1' >out
is "the writer's status" "${PIPESTATUS[0]}" 141

# Closed descriptors do not become something of ours.
"$raddle" run -n 2 sh -c 'cat; echo to out; echo to err >&2' <&- >&- 2>err
is "status without stdin and stdout" $? 0
is "standard error" "$(sort err)" $'[0] to err\n[1] to err'

# No signal is blocked; SIGPIPE is as it was born; SIGHUP stays ignored for nohup.
run -n 2 grep -E '^Sig(Blk|Ign)' /proc/self/status
is signals "$(sort -u out | sed 's/.....//' | tr -d '\t' | sort -u)" \
    $'igBlk:0000000000000000\nigIgn:0000000000000000'
(trap '' HUP; exec "$raddle" run -n 1 grep ^SigIgn /proc/self/status) >out
is "ignored" "$(tr -d '\t' <out)" "[0] SigIgn:0000000000000001"

# The limit on open files is the one we had, though the keeper raises its own.
(ulimit -Sn 100; exec "$raddle" run -n 2 bash -c 'ulimit -Sn') >out
is "limit" "$(sort out)" $'[0] 100\n[1] 100'

# Too low a limit is said before anything starts.
(ulimit -n 30; exec "$raddle" run -n 8 touch started) >out 2>err
is "status with few descriptors" $? 1
has err "8 ranks take 56 open files, and the limit is 30 (RLIMIT_NOFILE)"
[ ! -e started ] || fail "something was started"

# Ranks stay in the process group, so that the terminal reaches them.
run -n 2 sh -c 'cut -d " " -f 5 /proc/self/stat'
is groups "$(sed 's/.* //' out | sort -u | wc -l)" 1
