# --log-collectives: what ranks of one group print is the same, line by line, but
# for rank and number; groups, callers, operations and bytes are named.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/train.sh"

works --steps 1 --cp 2 --ranks 4 --log-collectives
for rank in 0 1 2 3; do
    sed -n "s/^.*collective [0-9]* of rank $rank: //p" err >rank.$rank
    [ -s rank.$rank ] || fail "rank $rank printed nothing"
done
is "who has a prefix" \
    "$(grep 'collective [0-9]' err | sed 's/collective.*//' | sort -u | paste -sd ' ')" \
    " [1]  [2]  [3] "

# All in one order; of a pair, both members see the same.
for rank in 1 2 3; do
    cmp <(grep -F 'group=[0,1,2,3]' rank.0) <(grep -F 'group=[0,1,2,3]' rank.$rank) ||
        fail "ranks 0 and $rank differ on the world"
done
cmp <(grep -F 'group=[0,1]' rank.0) <(grep -F 'group=[0,1]' rank.1) || fail "0 and 1"
cmp <(grep -F 'group=[2,3]' rank.2) <(grep -F 'group=[2,3]' rank.3) || fail "2 and 3"
is "lines of ranks 0 and 3" "$(wc -l <rank.0)" "$(wc -l <rank.3)"

has rank.0 "group=[0,1] lane=default caller=context.gather operation=all_gather dtype=float32 bytes=65536 stream=null"
has rank.0 "caller=fsdp.gather tok_embeddings.weight operation=all_gather dtype=float32 bytes=524288 "
has rank.0 "caller=fsdp.reduce norm.weight operation=reduce_scatter "
has rank.0 "caller=llama.norm operation=all_reduce dtype=float64 bytes=8 "
