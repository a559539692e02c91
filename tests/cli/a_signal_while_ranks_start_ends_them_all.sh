# SIGINT and SIGTERM at any moment of the start, while ranks are forked and while they
# join: the status is 128 and the signal, one line says so, and nothing is left.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
roles=$RADDLE_BUILD/tests/cli/roles

# With job control background jobs do not ignore SIGINT.
set -m

# interrupt SIGNAL NUMBER DELAY ARGUMENTS: starts a job and ends it after DELAY.
interrupt()
{
    local signal=$1 number=$2 delay=$3
    shift 3

    : >err
    begin "$@"
    sleep "$delay"
    restart_clock
    kill -"$signal" $launcher
    end
    is "status after $delay s" $status $((128 + number))
    within 0 10000
    # Before the command can take signals, it is the shell that ends.
    [ ! -s err ] || has err "raddle run: ended by signal $number ("
    is "lines of ours" "$(grep -c '^raddle run' err)" "$([ -s err ] && echo 1 || echo 0)"
    nothing_is_left
}

for delay in 0 0.003 0.01 0.02 0.04 0.08 0.15; do
    interrupt TERM 15 $delay -n 24 --grace 1 "$roles" rank_1_idles_instead_of_the_sum
    interrupt INT 2 $delay -n 24 --grace 1 sh -c 'exec sleep 60'
done

# While they wait for one that does not join.
for signal in "TERM 15" "INT 2"; do
    interrupt $signal 0.5 -n 4 sh -c '[ $RANK != 3 ] || exec sleep 60
        exec "$0" all_sum_a_mebibyte' "$roles"
done
