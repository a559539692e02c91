# `raddle bench faults`: every rank is told the truth about every fault, in time, and
# nothing is left behind.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

if [ ! -x "$RADDLE_BUILD/bench/faults" ]; then
    echo "skipped: there is no $RADDLE_BUILD/bench/faults"
    exit 77
fi

call bench
is status $status 0
has out "  faults "
call bench faults --runs 0
is status $status 2
has err "takes a number from 1 to 100000"
call bench faults --only kil
is status $status 2
has err "there is no fault 'kil'"
call bench faults --check lax
is status $status 2
has err "takes default or strict"
call bench faults --jbos 2
is status $status 2
call bench faults 3
is status $status 2
call bench faults --help
is status $status 0
has out "Usage: raddle bench faults"
[ "$(awk 'length > 80' out)" = "" ] || fail "a line is too long"

# One run of a seed is that of all runs, with what was printed.
call bench faults --run 8 --only order --seed 3 --json
is status $status 0
has err "mismatch"
has out '"fault":"order","runs":1,"right":1'

runs=30
[ "${RADDLE_SOAK:-}" != 1 ] || runs=500
for check in default strict; do
    call bench faults --runs $runs --seed "${RADDLE_SEED:-1}" --check $check --json
    is "$check: the last line" "$(tail -1 out)" \
        "{\"runs\":$runs,\"wrong_verdict\":0,\"innocent_named\":0,\"late\":0,\
\"wrong_status\":0,\"left_behind\":0}"
    is status $status 0
    [ "${RADDLE_SOAK:-}" != 1 ] || cat out
done
nothing_is_left
