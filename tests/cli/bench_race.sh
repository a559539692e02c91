# `raddle bench race --json` says for each arm what came of it: with the fence, with
# lanes of their own and on one stream all runs pass.
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

call bench race --runs 3 --json
is status $status 0
is "standard error" "$(cat err)" ""
lines_are out 12 || fail "not a line for each arm, with fingerprints and without"

# number KEY LINE
number()
{
    sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" <<<"$2"
}

for arm in unfenced fenced own-communicator created-unused one-stream \
    deterministic; do
    for compare in true false; do
        line=$(grep "^{\"arm\":\"$arm\",\"compare\":$compare,.*}$" out) ||
            fail "no line for $arm, compare $compare"
        passed=$(number passed "$line")
        is "total of $arm" "$(number total "$line")" 3
        is "sum of $arm" $((passed + $(number wrong "$line") + \
            $(number mismatch "$line") + $(number timeout "$line"))) 3
        case $arm in
        fenced | own-communicator | one-stream)
            is "passed of $arm, compare $compare" "$passed" 3
            ;;
        esac
        # Compared calls never give wrong results.
        [ $compare = false ] || is "wrong of $arm" "$(number wrong "$line")" 0
    done
done
nothing_is_left
