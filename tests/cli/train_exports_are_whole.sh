# --export writes parameters, gradients and tokens, each file whole or not at all.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/train.sh"

# header FILE: its JSON.
header()
{
    local bytes

    bytes=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    tail -c +9 "$1" | head -c "$bytes"
}

# whole FILE BYTES: as long as its header says, which is BYTES of data.
whole()
{
    local head

    head=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    is "bytes of $1" "$(stat -c %s "$1")" $((8 + head + $2))
}

works --steps 2 --export one
works --steps 2 --export two --ranks 2 --cp 2
works --steps 2 --export two # over what is there
is "files" "$(ls -A two | paste -sd ' ')" \
    "gradients.safetensors initial.safetensors model.safetensors tokens.safetensors"
for file in initial gradients model; do
    whole two/$file.safetensors $((6163712 * 4))
    header two/$file.safetensors >keys
    for key in tok_embeddings.weight norm.weight lm_head.weight \
        layers.5.attention.qkv_linear.wq.weight layers.0.feed_forward.w3.weight \
        layers.3.attention_norm.weight; do
        has keys "\"$key\": {\"dtype\": \"F32\""
    done
    is "tensors of $file" "$(grep -o '"dtype"' keys | wc -l)" 57
done
whole one/tokens.safetensors $((4 * 4 * 2 * 4 * 64))
header one/tokens.safetensors >keys
for key in tokens labels positions documents; do
    has keys "\"$key\": {\"dtype\": \"I32\", \"shape\": [2, 4, 64]"
done

# What is trained on and from does not depend on the ranks.
works --steps 2 --export four --ranks 4 --dp-shard 2 --cp 2
cmp one/tokens.safetensors four/tokens.safetensors || fail "tokens differ"
cmp one/initial.safetensors four/initial.safetensors || fail "parameters differ"

# Killed while it writes, it leaves nothing half-done.
mkdir killed
for delay in 0.1 0.3 0.5 0.7; do
    "$raddle" train "${small[@]}" --export killed >out 2>err &
    pid=$!
    sleep $delay
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    for file in killed/* killed/.[!.]*; do
        [ -e "$file" ] || continue
        case $file in
        */tokens.safetensors) whole "$file" $((4 * 4 * 10 * 4 * 64)) ;;
        */*.safetensors) whole "$file" $((6163712 * 4)) ;;
        *) fail "left: $file" ;;
        esac
    done
done

# A folder that cannot be, and one that is full.
call train "${small[@]}" --export none/where
is status $status 2
has err "cannot make the folder 'none/where'"
call train "${small[@]}" --export one/model.safetensors
is status $status 2
has err "'one/model.safetensors' is not a folder"
