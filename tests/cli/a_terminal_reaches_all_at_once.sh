# Ctrl-C and a hangup of the terminal reach launcher, keeper and ranks at once: the
# ranks get one signal each, and the job is not said to have failed.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

if ! command -v python3 >/dev/null; then
    echo "skipped: no python3 to make a terminal with"
    exit 77
fi

cat >terminal.py <<'PY'
"""terminal.py TYPED COMMAND...: runs COMMAND on a terminal of its own; once it has
printed "ready" twice, types TYPED ("hangup": closes the terminal instead). Prints
what came and the exit status."""
import os, pty, sys, time

def read(fd):
    try:
        return os.read(fd, 65536).decode()
    except OSError:
        return ""

pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
text = ""
while text.count("ready") < 2:
    part = read(fd)
    if part == "":
        sys.exit("ended too early: " + text)
    text += part
if sys.argv[1] == "hangup":
    os.close(fd)
else:
    for typed in sys.argv[1].encode().decode("unicode_escape"):
        os.write(fd, typed.encode())
        time.sleep(0.3)
    while part := read(fd):
        text += part
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(text.replace("\r", ""))
print("status", status)
PY

program='trap "echo got INT; $0" INT; trap "exit 0" HUP
echo ready
while :; do sleep 0.05; done'

RADDLE_TEST_MARK=$mark python3 terminal.py '\x03' "$raddle" run -n 2 \
    sh -c "$program" "exit 1" >out 2>err
has out "status 130"
has out "raddle run: ended by signal 2 (Interrupt); 2 of 2 ranks were still running"
is "what ranks got" "$(grep -o "\[.*got.*" out | sort)" $'[0] got INT\n[1] got INT'
nothing_is_left

# A rank that dies of it at once has not failed.
RADDLE_TEST_MARK=$mark python3 terminal.py '\x03' "$raddle" run -n 2 \
    sh -c 'echo ready; exec sleep 60' >out 2>err
has out "status 130"
has out "raddle run: ended by signal 2 (Interrupt)"
nothing_is_left

# Twice ends the grace period.
before=${EPOCHREALTIME/[^0-9]/}
RADDLE_TEST_MARK=$mark python3 terminal.py '\x03\x03' "$raddle" run --grace 60 \
    -n 2 sh -c "$program" : >out 2>err
has out "status 130"
ms=$(((${EPOCHREALTIME/[^0-9]/} - before) / 1000))
within 0 5000
nothing_is_left

RADDLE_TEST_MARK=$mark python3 terminal.py hangup "$raddle" run -n 2 \
    sh -c "$program" : >out 2>err
has out "status 129"
nothing_is_left
