# What raddle trains is what PyTorch trains, from the same values on the same
# tokens: every gradient of the first step, and the losses of ten steps. The debug
# model on text, then a model with fewer heads of keys than of queries, on tokens
# in two microbatches, then over two ranks that share each row.
# SPDX-License-Identifier: BSD-3-Clause
set -u

raddle=${RADDLE_BUILD:?RADDLE_BUILD names no build folder}/cli/raddle
work=${TEST_TEMP:?TEST_TEMP names no folder for files}
here=$(dirname "${BASH_SOURCE[0]}")

if [ -z "${RADDLE_PYTHON:-}" ]; then
    echo "skipped: RADDLE_PYTHON names no Python with PyTorch (./dev check parity" \
        "makes one)"
    exit 77
fi

status=0
# compare NAME HEADS KV_HEADS FLAG...
compare()
{
    local name=$1 heads=$2 kv_heads=$3
    shift 3

    echo "--- $name: raddle train $*"
    mkdir "$work/$name"
    "$raddle" train "$@" --steps 10 --seed 42 --json --export "$work/$name" \
        >"$work/$name.jsonl" || exit 1
    "$RADDLE_PYTHON" "$here/reference.py" "$work/$name" "$work/$name.jsonl" \
        "$heads" "$kv_heads" || status=1
}

# 16 KiB of tokens of 16 bits, 0..63.
tokens=$work/tokens.bin
for ((i = 0; i < 8192; i++)); do
    printf '\\x%02x\\x00' $((((i * i + i / 7) ^ (i >> 3)) & 63))
done >"$work/escapes"
printf '%b' "$(<"$work/escapes")" >"$tokens"

compare debug 16 16 --model llama3-debug --data "$here/../../README.md" "$here" \
    --seq 256 --tokens 256
compare fewer 4 2 --model llama3-tiny --data "$tokens" --seq 64 --tokens 256 \
    --accumulate 2
compare shared 4 2 --model llama3-tiny --data "$tokens" --seq 64 --tokens 256 \
    --cp 2
exit $status
