# `raddle bench OPERATION ...` times operations, looks at their results, and says
# what it refuses; peers that are not installed are skipped with a reason.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

if [ ! -x "$RADDLE_BUILD/bench/speed" ]; then
    echo "skipped: there is no $RADDLE_BUILD/bench/speed"
    exit 77
fi

# refuses SENTENCE ARGUMENTS
refuses()
{
    local sentence=$1
    shift

    call bench "$@"
    is "status of $*" $status 2
    has err "$sentence"
    is "output of $*" "$(cat out)" ""
}

nothing_runs()
{
    [ -z "$(marked)" ]
}

refuses "there is no option '--fast'" --fast
refuses "the nearest is 'all_reduce'" all_reduc
refuses "there is no operation 'nothing'" all_reduce nothing
refuses "'--ranks' needs a value" all_reduce --ranks
for ranks in 1 0 -2 two 257 "" 2,,4 2x; do
    refuses "--ranks takes numbers from 2 to 256, and got '$ranks'" \
        all_reduce --ranks "$ranks"
done
for bytes in 0 -8 x 8K8 99999999999999999999 2000M ""; do
    refuses "--bytes takes sizes such as 8, 64K or 16M, and got '$bytes'" \
        barrier --bytes "$bytes"
done
refuses "--dtypes takes names" all_reduce --dtypes float33
refuses "--turns takes a number from 1 to 99" all_reduce --turns 100
refuses "--seconds takes a number from 1" all_reduce --seconds 0
refuses "3 ranks are not 2 groups of one size" all_reduce --ranks 3 --groups 2
refuses "--groups is without --peers" all_reduce --ranks 4 --groups 2 --peers

refuses "'all_reduce=fast' has no ALGORITHM" all_reduce --algorithm all_reduce=fast
refuses "'reduce:4Q=one_shot' has no size for BYTES" --algorithm reduce:4Q=one_shot

# Rules stand before raddle's own, and decide.
call bench all_reduce broadcast --explain --ranks 4 --bytes 8,4K \
    --algorithm all_reduce:64K=two_phase
is status $status 0
is "the first rule" "$(grep -m 1 '^  .*=' out)" \
    "  all_reduce:65536:*:*=two_phase   (RADDLE_ALGORITHM)"
has out "  all_reduce:16384:4:*=one_shot"
grep -q '^all_reduce  *8 .* one_shot  *in the line  *1$' out || fail "not in the line"
grep -q '^all_reduce  *4K .* two_phase  *staged  *1$' out || fail "not two phases"
grep -q '^broadcast  *4K .* one_shot  *staged  *1$' out || fail "not one shot"
call bench all_reduce --ranks 3 --bytes 4K,100K --turns 1 --json \
    --algorithm all_reduce:64K=two_phase,all_reduce=one_shot
is status $status 0
is "right rows by these rules" "$(grep -c '"right":true' out)" 2

call bench all_reduce --help
is status $status 0
has out "Usage: raddle bench OPERATION"
[ "$(awk 'length > 80' out)" = "" ] || fail "a line is too long"
call bench
is status $status 0
has out "  barrier all_reduce"

# Every operation, with the right results.
operations=(barrier all_reduce all_gather reduce_scatter all_to_all broadcast
    reduce gather scatter all_gather_v reduce_scatter_v all_to_all_v exchange)
call bench "${operations[@]}" --ranks 2,3 --bytes 4K --dtypes bfloat16 --turns 1 \
    --json
is status $status 0
is "standard error" "$(cat err)" ""
lines_are out $((1 + 2 * ${#operations[@]} + 1)) || fail "a line is missing"
is "right rows" "$(grep -c '"right":true' out)" $((2 * ${#operations[@]}))
has out '"points":26,"left_out":0,"peers_wrong":0,"wrong":0}'
has out '"geomean_vs_best":null'

# Two groups at once, of memory that others read where it lies.
call bench all_reduce --ranks 4 --groups 2 --bytes 64K --mapped --turns 1
is status $status 0
has out "all_reduce of float32, 4 ranks in 2 groups on "
has out ", mapped"

# Killed, it leaves nothing behind.
RADDLE_TEST_MARK=$mark "$RADDLE_BUILD/bench/speed" all_reduce --ranks 3 --bytes 8,16M \
    --turns 99 >out 2>err &
driver=$!
until_true 20 grep -q bytes out
kill -KILL $driver
wait $driver 2>/dev/null
until_true 20 nothing_runs

# Peers that are not there, as in a build without ./dev peers.
if [ ! -e "$RADDLE_BUILD/bench/peers" ]; then
    call bench barrier --ranks 2 --turns 1 --peers --json
    is status $status 0
    has err "2 ranks of openmpi: there is no program peers/openmpi"
    has out '"openmpi":"there is no program'
fi
nothing_is_left
