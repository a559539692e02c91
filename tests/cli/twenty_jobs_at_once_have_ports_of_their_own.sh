# H06 b: 20 launches at once, each of 4 ranks whose rank 0 listens at MASTER_PORT as a
# store of PyTorch's does. Each counts its own ranks and no others.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
unset RANK MASTER_ADDR MASTER_PORT

program=$RADDLE_BUILD/tests/cli/port
body=rank_0_listens_and_the_others_connect
jobs=20

pids=()
for ((i = 0; i < jobs; i++)); do
    "$raddle" run -n 4 --no-prefix "$program" $body >"digits.$i" 2>"err.$i" &
    pids+=($!)
done
for ((i = 0; i < jobs; i++)); do
    wait "${pids[i]}" || fail "job $i: status $?: $(cat "err.$i")"
    is "job $i" "$(grep -x '[0-9]*' "digits.$i")" 1111
done

# All ranks are told the same port, which is one job's alone.
run -n 3 --no-prefix sh -c 'echo $MASTER_ADDR:$MASTER_PORT'
is "ports of one job" "$(sort -u out | wc -l)" 1
grep -qx '127.0.0.1:[1-9][0-9]*' out || fail "no port: $(cat out)"

# What the user has set stays.
MASTER_PORT=29499 run -n 1 --no-prefix sh -c 'echo $MASTER_ADDR:$MASTER_PORT'
is "the user's port" "$(cat out)" 127.0.0.1:29499
# But in a rank it is that of the job around.
MASTER_PORT=29499 RANK=0 run -n 1 --no-prefix sh -c 'echo $MASTER_PORT'
[ "$(cat out)" != 29499 ] || fail "the port of the outer job was taken over"

# Nobody listens, and ranks do not inherit what holds the port.
run -n 2 bash -c '! (: </dev/tcp/127.0.0.1/$MASTER_PORT) 2>/dev/null'
is "status of who connects too soon" $status 0
