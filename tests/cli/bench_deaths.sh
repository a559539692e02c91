# `raddle bench deaths --json` says for each arm how soon the last rank had its error;
# all ranks have it at one call, with the right rank in it.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

if [ ! -x "$RADDLE_BUILD/bench/deaths" ]; then
    echo "skipped: there is no $RADDLE_BUILD/bench/deaths"
    exit 77
fi

call bench deaths --rounds 0
is status $status 2
has err "--rounds takes a number from 1 to 1000, and got '0'"
call bench deaths --ranks 2
is status $status 2
has err "takes a number from 3 to 16"
call bench deaths --cores x
is status $status 2
call bench deaths --seed
is status $status 2
has err "'--seed' needs a value"
call bench deaths --rouds
is status $status 2
call bench deaths 3
is status $status 2
has err "takes no arguments, and got '3'"
call bench deaths --help
is status $status 0
has out "Usage: raddle bench deaths"
[ "$(awk 'length > 80' out)" = "" ] || fail "a line is too long"

# Its status says whether the times were kept, which nobody can promise of a test.
call bench deaths --rounds 2 --ranks 4 --json
[ "$status" -le 1 ] || fail "status $status"
is "standard error" "$(cat err)" ""
lines_are out 3 || fail "not a line for each arm"
for arm in "kill, raddle run" "kill, torchrun" mismatch; do
    grep -q "^{\"arm\":\"$arm\",\"ranks\":4,\"cores\":2,\"rounds\":2,\"disagreed\":0,\"ms\":\[" \
        out || fail "no line for $arm, or its ranks disagreed: $(cat out)"
done
nothing_is_left
