# Nobody reads what ranks print, or it cannot be written: the job ends all the
# same, and says what was lost.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

# The reader has gone: ranks learn of it as they would without us.
RADDLE_TEST_MARK=$mark timeout 20 "$raddle" run -n 4 yes 2>err | head -1 >out
is "status without a reader" "${PIPESTATUS[0]}" 141
is output "$(cut -c 4- out)" " y"
has err "killed by signal 13 (Broken pipe)"
nothing_is_left

# One that prints no more ends well.
RADDLE_TEST_MARK=$mark "$raddle" run -n 2 sh -c 'echo a; sleep 0.5' 2>err |
    head -c 1 >out
is "status of quiet ranks" "${PIPESTATUS[0]}" 0
is "standard error" "$(cat err)" ""

# No room on the disk: the ranks go on, and the loss is a failure.
RADDLE_TEST_MARK=$mark "$raddle" run -n 2 sh -c 'seq 1 9; echo fine >&2' \
    >/dev/full 2>err
is "status with a full disk" $? 1
is "standard error" "$(sort err)" "[0] fine
[1] fine
raddle run: 108 bytes for standard output could not be written: No space left on device"
RADDLE_TEST_MARK=$mark "$raddle" run -n 2 sh -c 'echo a; exit 4' >/dev/full 2>err
is "status of a failed rank" $? 4
"$raddle" run -n 2 sh -c 'seq 1 9; exit 0' >/dev/null 2>/dev/full
is "status with nowhere to complain" $? 0
"$raddle" run -n 2 echo x >&- 2>&-
is "status with closed outputs" $? 0
nothing_is_left

# A pipe that is full and not read: a failed job does not wait for its reader.
mkfifo pipe
sleep 60 <pipe &
sleeper=$!
before=${EPOCHREALTIME/[^0-9]/}
RADDLE_TEST_MARK=$mark "$raddle" run -n 2 sh -c 'echo $RANK >&2
    [ $RANK = 0 ] || exit 3; exec yes' >pipe 2>err
is "status with a full pipe" $? 3
ms=$(((${EPOCHREALTIME/[^0-9]/} - before) / 1000))
within 2000 10500
has err "raddle run: rank 1 failed first: exit status 3; 1 other was still running"
has err "bytes for standard output could not be written: nobody took them"
nothing_is_left

# A slow reader of a job that went well gets everything; the pipe, which others
# write to as well, has not been made non-blocking.
{
    "$raddle" run -n 2 seq 1 40000 2>err
    echo $? >status
    grep flags: /proc/self/fdinfo/8 >flags
} 8>&1 | (sleep 1; wc -l >out)
is "status with a slow reader" "$(cat status)" 0
is lines "$(cat out)" 80000
is "flags of the pipe" "$(cut -f 2 flags)" 01
kill $sleeper

# A socket, and a terminal, as output.
if command -v python3 >/dev/null; then
    python3 - "$raddle" <<'PY' || fail "not all came through a socket"
import socket, subprocess, sys
ours, theirs = socket.socketpair()
job = subprocess.Popen([sys.argv[1], "run", "-n", "2", "seq", "1", "30000"],
                       stdout=theirs)
theirs.close()
data = b"".join(iter(lambda: ours.recv(65536), b""))
assert job.wait() == 0
assert data.count(b"\n") == 60000, data.count(b"\n")
PY
fi
if command -v script >/dev/null; then
    script -qec "'$raddle' run -n 2 seq 1 5000" /dev/null </dev/null >out
    is "lines through a terminal" "$(wc -l <out)" 10000
fi
