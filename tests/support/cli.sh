# shellcheck shell=bash
# For tests of the command: source "${0%/*}/../support/cli.sh"
# SPDX-License-Identifier: BSD-3-Clause
set -u

raddle=${RADDLE_BUILD:?the folder with the build}/cli/raddle

# In the environment of what is run, and of all that it starts.
mark=$$.$RANDOM

fail()
{
    echo "line ${BASH_LINENO[*]}: $*" >&2
    for file in out err; do
        [ ! -s $file ] || { echo "--- $file" && head -c 4000 $file; } >&2
    done
    exit 1
}

# call ARGUMENTS: runs the command; leaves $status, $ms, and the files out and err.
call()
{
    local before=${EPOCHREALTIME/[^0-9]/}

    RADDLE_TEST_MARK=$mark "$raddle" "$@" >out 2>err
    status=$?
    ms=$(((${EPOCHREALTIME/[^0-9]/} - before) / 1000))
}

# run ARGUMENTS: of `raddle run`.
run()
{
    call run "$@"
}

# begin ARGUMENTS: the same in the background, as process $launcher.
begin()
{
    : >out >err # at once: what follows may look at them before the shell below does
    RADDLE_TEST_MARK=$mark "$raddle" run "$@" >out 2>err &
    launcher=$!
    began=${EPOCHREALTIME/[^0-9]/}
}

# end: waits for it; leaves $status, and in $ms the time since begin or, if it was
# called meanwhile, restart_clock.
end()
{
    wait "$launcher" 2>/dev/null
    status=$?
    ms=$(((${EPOCHREALTIME/[^0-9]/} - began) / 1000))
}

restart_clock()
{
    began=${EPOCHREALTIME/[^0-9]/}
}

# is WHAT ACTUAL EXPECTED
is()
{
    [ "$2" = "$3" ] || fail "$1 is '$2' and not '$3'"
}

# has FILE TEXT: as part of it.
has()
{
    grep -qF -e "$2" "$1" || fail "$1 does not have '$2'"
}

# within LEAST MOST: how many ms the last run may have taken.
within()
{
    [ "$ms" -ge "$1" ] && [ "$ms" -le "$2" ] || fail "took $ms ms, not $1 to $2"
}

# until_true SECONDS COMMAND: waits for it.
until_true()
{
    local tries=$(($1 * 20))
    shift

    until "$@"; do
        [ $((tries--)) -gt 0 ] || fail "in vain: $*"
        sleep 0.05
    done
}

lines_are()
{
    [ "$(wc -l <"$1")" -eq "$2" ]
}

# The ids of processes that were started with the mark.
marked()
{
    grep -lszx "RADDLE_TEST_MARK=$mark" /proc/[0-9]*/environ | tr -dc '0-9\n'
}

# Nothing that was started with the mark is left.
nothing_is_left()
{
    local left

    left=$(marked | paste -sd ,)
    [ -z "$left" ] || fail "left: $(ps -o pid,ppid,stat,args -p "$left")"
}
