# `raddle bench race --json` says for each arm what came of it: with the fence, with
# lanes of their own and on one stream all runs pass; and trained so, the losses are
# the same to the last digit.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

if [ ! -x "$RADDLE_BUILD/bench/race" ]; then
    echo "skipped: there is no $RADDLE_BUILD/bench/race"
    exit 77
fi

call bench
is status $status 0
has out "  race "
has out "  fence "
has out "  recorder "
call bench raec
is status $status 2
has err "the nearest is 'race'"
call bench --fast
is status $status 2
call bench race --runs 0
is status $status 2
has err "takes a number from 1 to 1000"
call bench race --rusn
is status $status 2
call bench race 3
is status $status 2
call bench race --help
is status $status 0
has out "Usage: raddle bench race"
[ "$(awk 'length > 80' out)" = "" ] || fail "a line is too long"

# number KEY LINE
number()
{
    sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" <<<"$2"
}

# line_of ARM COMPARE
line_of()
{
    grep "^{\"arm\":\"$1\",\"compare\":$2,.*}$" out ||
        fail "no line for $1, compare $2"
}

# arms_are_right RUNS: as out says.
arms_are_right()
{
    local arm compare line passed

    lines_are out 12 ||
        fail "not a line for each arm, with fingerprints and without"
    for arm in unfenced fenced own-communicator created-unused one-stream \
        deterministic; do
        for compare in true false; do
            line=$(line_of $arm $compare)
            passed=$(number passed "$line")
            is "total of $arm" "$(number total "$line")" "$1"
            is "sum of $arm" $((passed + $(number wrong "$line") + \
                $(number mismatch "$line") + $(number timeout "$line"))) "$1"
            case $arm in
            fenced | own-communicator | one-stream)
                is "passed of $arm, compare $compare" "$passed" "$1"
                ;;
            esac
            # Compared calls never give wrong results.
            [ $compare = false ] ||
                is "wrong of $arm" "$(number wrong "$line")" 0
        done
    done
}

# losses ARM: as out has them, for runs with fingerprints.
losses()
{
    line_of "$1" true | sed 's/.*"losses":\[\([^]]*\)\].*/\1/'
}

call bench race --runs 3 --json
is status $status 0
is "standard error" "$(cat err)" ""
arms_are_right 3

call bench race --train --runs 2 --json
is status $status 0
is "standard error" "$(cat err)" ""
arms_are_right 2
is "losses of one stream" "$(losses one-stream | tr -cd , | wc -c)" 9
is "losses of fenced training" "$(losses fenced)" "$(losses one-stream)"

call bench race --train --runs 1
is status $status 0
has out "fenced training has the losses of one-stream training, bit for bit: "

RADDLE_BLAS=/nowhere call bench race --train --runs 1
is status $status 1
has err "raddle bench race: RADDLE_BLAS=/nowhere: "
nothing_is_left
