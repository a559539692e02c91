# H02: all ranks and the launcher are killed, 20 times, at any moment; also without a
# launcher, under one fixed name. Nothing is added to /dev/shm or the folder for files,
# and the job after them has the right sum.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
roles=$RADDLE_BUILD/tests/cli/roles
export TMPDIR=$PWD/temporary
mkdir temporary

before=$(ls /dev/shm)
nothing_new()
{
    is /dev/shm "$(ls /dev/shm)" "$before"
    is TMPDIR "$(ls temporary)" ""
}

kill_all()
{
    # The launcher's first, and whatever they have started until then.
    kill -KILL ${launcher:-} $(marked) 2>/dev/null
    until_true 10 eval '[ -z "$(marked)" ]'
    wait 2>/dev/null
}

export FOREVER=1
for i in {1..20}; do
    begin -n 8 "$roles" all_sum_a_mebibyte
    sleep 0.$((i * 2 % 4))$((RANDOM % 10))
    kill_all
    nothing_new
done

# by_hand: eight ranks of the job h02.
by_hand()
{
    for rank in {0..7}; do
        RADDLE_TEST_MARK=$mark RADDLE_JOB=h02 RANK=$rank WORLD_SIZE=8 \
            "$roles" all_sum_a_mebibyte >>digits 2>>err &
    done
}

launcher=
for i in {1..20}; do
    by_hand
    sleep 0.$((i * 2 % 4))$((RANDOM % 10))
    kill_all
    nothing_new
done

unset FOREVER
run -n 8 --no-prefix "$roles" all_sum_a_mebibyte
is status $status 0
is sums "$(sort -u out)" 11111111
: >digits
by_hand
wait
is "sums by hand" "$(sort -u digits)" 11111111
is ranks "$(wc -l <digits)" 8
nothing_new
nothing_is_left
