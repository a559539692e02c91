# However a job ends, what its ranks have started ends with it: children in the
# background, in sessions of their own, daemons, and those that ignore SIGTERM.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

program='
sleep 300 &
setsid sleep 300 &
(setsid sh -c "trap \"\" TERM HUP; sleep 300 & sleep 300" &)
(trap "" TERM; sleep 300 & sleep 300 & exit 0)
sleep 0.3'

run -n 3 sh -c "$program; exit 0"
is status $status 0
is "standard error" "$(cat err)" ""
within 300 3000
nothing_is_left

run -n 3 --grace 1 sh -c "$program; [ \$RANK != 1 ] || exit 5; exec sleep 300"
is status $status 5
within 3000 6000
nothing_is_left

begin -n 3 --grace 0.5 sh -c "$program; echo ready; exec sleep 300"
until_true 10 lines_are out 3
kill -TERM $launcher
end
is status $status 143
nothing_is_left

# Orphans are reaped while the job runs, so that zombies do not pile up.
begin -n 1 sh -c 'for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.01 &) ; done; sleep 0.5
    echo ready; sleep 300'
until_true 10 lines_are out 1
keeper=$(tr -d ' ' <"/proc/$launcher/task/$launcher/children")
is "children of the keeper" "$(wc -w <"/proc/$keeper/task/$keeper/children")" 1
kill -KILL $launcher
end
until_true 5 eval '[ -z "$(marked)" ]'
