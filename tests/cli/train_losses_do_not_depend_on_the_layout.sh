# The same seed gives the same losses and norms on any number of ranks, cut by
# tokens, by rows or by parameters, or not at all; twice the same layout the same
# bits.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/train.sh"

make_tokens tokens.bin
small=(--model llama3-tiny --data tokens.bin --seq 64 --tokens 256 --seed 42)

losses()
{
    works --steps 3 --json "$@"
    loss=$(values loss)
    norm=$(values grad_norm)
}

losses
one=$loss one_norm=$norm
same()
{
    losses "$@"
    near "loss of $*" "$loss" "$one"
    near "norm of $*" "$norm" "$one_norm"
}

same
is "loss of a second run" "$loss" "$one"
same --accumulate 2 activation-checkpoint:none
same --ranks 2 --no-fsdp activation-checkpoint:full
same --parallelism.data_parallel_replicate_degree 2 \
    --parallelism.context_parallel_degree 2
same --ranks 4 --cp 2
once=$loss
same --ranks 4 --cp 2
is "loss of a second run of four ranks" "$loss" "$once"
same --ranks 4 --cp 2 --no-overlap
is "loss of four ranks without streams" "$loss" "$once"
same --cp 4
