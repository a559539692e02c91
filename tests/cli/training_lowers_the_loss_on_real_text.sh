# Ten steps of the debug model, its rows cut over the whole world, on the project's
# own text: the loss falls from about 8 to under 6, and every line is as promised.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/train.sh"

# falls LIST: from about 8 to under 6.
falls()
{
    printf '%s\n' $1 | awk '
        NR == 1 && ($1 < 7.6 || $1 > 8.6) { exit 1 }
        { last = $1 }
        END { exit !(NR == 10 && last < 6) }' ||
        fail "the loss does not fall from about 8 to under 6: $1"
}

works --cp 2 --steps 2
lines_are out 2 || fail "not two lines"
number='[0-9]+(,[0-9]{3})*'
line="step: [ 1][0-9]  loss: +[0-9]+\.[0-9]{5}  grad_norm: +[0-9]+\.[0-9]{4}"
line+="  memory: +[0-9]+\.[0-9]{2}GiB\([0-9]+\.[0-9]{2}%\)"
line+="  tps: $number  tflops: [0-9]+\.[0-9]{2}  mfu: [0-9]+\.[0-9]{2}%"
is "lines that are metrics" "$(grep -cEx "$line" out)" 2
has err "dp_replicate(1) * dp_shard(1) * cp(2) = 2 ranks"
has err "2 steps of 256 tokens"

works --cp 4 --seq 128 --tokens 512 --json
lines_are out 11 || fail "not eleven lines"
is "steps" "$(values step | paste -sd ' ')" "1 2 3 4 5 6 7 8 9 10"
falls "$(values loss)"
is "numbers of a step" "$(grep -c '"grad_norm": .*"tokens_per_s": ' out)" 10
is "keys of the last line" \
    "$(tail -n 1 out | sed 's/ "bytes_per_rank".*//' | grep -o '"[a-z_]*"' | paste -sd ' ')" \
    '"account" "groups_opened" "communicators" "arena_bytes_per_rank" "arena_bytes_total" "dev_shm_peak_bytes" "collectives"'
kinds='"header" "state" "slots" "texts" "records" "staging" "heap" "page_tables" "private"'
is "what bytes are for" \
    "$(tail -n 1 out | grep -o '"bytes_per_rank".*' | grep -o '"[a-z_]*"' | paste -sd ' ')" \
    "\"bytes_per_rank\" $kinds \"bytes_total\" $kinds"
sum=0
for kind in header state slots texts records staging heap; do
    sum=$((sum + $(tail -n 1 out | grep -o '"bytes_total".*' |
        sed "s/.*\"$kind\": \([0-9]*\).*/\1/")))
done
is "the arena by purposes" "$sum" "$(values arena_bytes_total)"
is "/dev/shm" "$(values dev_shm_peak_bytes)" 0
is "communicators" "$(values communicators)" 1
is "standard error" "$(cat err)" ""

# The first step, and each third.
works --metrics.log_freq 3 --steps 6 --json
is "steps" "$(values step | paste -sd ' ')" "1 3 6"
