# shellcheck shell=bash
# For tests of `raddle train`: source "${0%/*}/../support/train.sh"
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
root=$(cd "${0%/*}/../.." && pwd)

# train ARGUMENTS: of `raddle train`, in little: four rows of 64 tokens a step, of
# the project's own text.
small=(--data "$root/README.md" "$root/src" --seq 64 --tokens 256 --seed 42)
train()
{
    call train "${small[@]}" "$@"
}

works()
{
    train "$@"
    is "status of $*" $status 0
    nothing_is_left
}

# make_tokens FILE: 4,096 tokens of 16 bits, 0 to 63, for the model that is small
# enough to be made and trained in no time.
make_tokens()
{
    local i

    for ((i = 0; i < 4096; i++)); do
        printf '\\x%02x\\x00' $((((i * i + i / 7) ^ (i >> 3)) & 63))
    done >escapes
    printf '%b' "$(<escapes)" >"$1"
}

# values NAME: of the objects in out, one a line.
values()
{
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" out
}

# near WHAT ACTUAL EXPECTED: lists of numbers, within 1e-4 relative.
near()
{
    local left right

    left=$(printf '%s\n' $2)
    right=$(printf '%s\n' $3)
    [ -n "$left" ] || fail "$1: there is none"
    paste <(echo "$left") <(echo "$right") | awk '
        { d = $1 - $2; if (d < 0) d = -d }
        NF != 2 || d > 1e-4 * $2 { exit 1 }' ||
        fail "$1 is '$2' and not near '$3'"
}
