# Whatever is wrong with flags, layout, settings or data: status 2, one line that
# says what, with the numbers, and no rank has been started.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/train.sh"

printf 'some text' >text
: >empty
mkdir nothing
printf 'xyz' >odd.bin
printf '\x05\x00\x00\x08' >beyond.bin
printf '[training]\nsteps = 3\nstep = 4\n' >unknown.toml
printf 'steps = 3\n\nseq = [\n' >syntax.toml

# refused PART... -- ARGUMENTS
refused()
{
    local parts=()

    while [ "$1" != -- ]; do
        parts+=("$1")
        shift
    done
    shift
    call train "$@"
    is "status of $*" $status 2
    lines_are err 1 || fail "$*: not one line"
    is "output of $*" "$(cat out)" ""
    for part in "raddle train: " "${parts[@]}"; do
        has err "$part"
    done
    nothing_is_left
}

refused "there is no flag '--cq'" "'--cp'" -- --data text --cq 4
refused "'text' is no flag" "--data PATH" -- text
refused "--steps wants a value" -- --data text --steps
refused "--steps takes an integer" "'many'" -- --data text --steps many
refused "there is no model 'gpt'" "llama3-debug" -- --data text --model gpt
refused "tensor parallelism is not in this version" -- --data text \
    --parallelism.tensor_parallel_degree 2
refused "a memory budget is not in this version" -- activation-checkpoint:memory-budget

refused "Invalid parallel dims" "cp(3) != WORLD_SIZE(4)" -- --data text --ranks 4 --cp 3
refused "Parallelism degree should be >= 1" -- --data text --cp 0
refused "dp_shard must be -1 or >=1" -- --data text --dp-shard 0
refused "max_context_length (100)" "2 * cp (8)" -- --data text --cp 4 --seq 100
refused "2 rows" "dp(4) * accumulate(1)" "--tokens 4096" -- --data text --ranks 4
refused "1000 tokens" "rows of 256" -- --data text --seq 256 --tokens 1000
refused "ranks, and a world has at most 1024" -- --data text --cp 2000

refused "--data PATH" -- --steps 3
refused "cannot read 'missing'" "No such file" -- --data text missing
refused "'empty' is empty" -- --data empty
refused "there is no data in 'nothing'" -- --data nothing
refused "10 tokens" "1024" -- --data text --ranks 2
refused "'odd.bin' has 3 bytes" "uint16" -- --data odd.bin
refused "'odd.bin' has 3 bytes" "uint32" -- --data odd.bin --token-type uint32
refused "token 1 of 'beyond.bin'" "2048" "2047" -- --data beyond.bin

refused "unknown.toml, line 3" "'training.step'" "'training.steps'" -- --config unknown.toml
refused "syntax.toml, line 4" "the end of the file" -- --config syntax.toml
refused "cannot read the settings in './none.toml'" -- --config ./none.toml

# As one of several ranks, rank 0 says it alone.
call run -n 2 -- "$raddle" train --data missing
is status $status 2
is "sentences" "$(grep -c "cannot read 'missing'" err)" 1
