# On a terminal a line of progress is shown and overwritten; elsewhere there is
# none.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/train.sh"

if ! command -v python3 >/dev/null; then
    echo "skipped: no python3 to make a terminal with"
    exit 77
fi

works --steps 3 --ranks 2
! grep -q "step 2 of 3" out err || fail "progress where there is no terminal"

cat >terminal.py <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        part = b""
    if not part:
        break
    os.write(1, part)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY

RADDLE_TEST_MARK=$mark python3 terminal.py "$raddle" train "${small[@]}" --steps 3 \
    --ranks 2 >out 2>err
is status $? 0
tr '\r' '\n' <out >lines
has lines $'\x1b[Kstep 1 of 3'
grep -qE $'^\x1b\\[Kstep 3 of 3, [0-9]+ s left' lines || fail "no time left"
# Each line of metrics begins where progress was wiped out.
is "lines of metrics" "$(grep -cE $'^\x1b\\[Kstep: ' lines)" 3
nothing_is_left
