# SIGKILL of either process of the command: the other one ends what is left.
# (Random moments are in tests/fault.)
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

program='setsid sleep 300 & (setsid sh -c "sleep 300 & sleep 300" &) ; echo ready
exec sleep 300'

begin -n 3 sh -c "$program"
until_true 10 lines_are out 3
keeper=$(tr -d ' ' <"/proc/$launcher/task/$launcher/children")
is "name of the keeper" "$(cat "/proc/$keeper/comm")" raddle-keeper
kill -KILL "$keeper"
end
is status $status 137
is "standard error" "$(cat err)" "raddle run: the keeper of the job (process $keeper) \
was killed by signal 9 (Killed); all processes of the job have been ended"
nothing_is_left

begin -n 3 sh -c "$program"
until_true 10 lines_are out 3
kill -KILL $launcher
end
is status $status 137
until_true 5 eval '[ -z "$(marked)" ]'
is "standard error" "$(cat err)" ""

# A child that the launcher had before it was the launcher is not of the job, also
# when the keeper is killed.
: >out >err
RADDLE_TEST_MARK=$mark bash -c 'sleep 300 & echo $! >stranger
    exec "$0" run -n 2 sh -c "echo ready; exec sleep 300"' "$raddle" >out 2>err &
launcher=$!
until_true 10 lines_are out 2
stranger=$(cat stranger)
keeper=$(tr ' ' '\n' <"/proc/$launcher/task/$launcher/children" |
    grep -vx -e "$stranger" -e '')
kill -KILL "$keeper"
end
is status $status 137
is "who is left" "$(marked)" "$stranger"
kill "$stranger"
