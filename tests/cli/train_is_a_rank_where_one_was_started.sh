# Started by raddle run or torchrun, it takes part as the rank it was started as;
# files of settings and flags go together.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/train.sh"

works --steps 2 --json --ranks 2
loss=$(values loss)

call run -n 2 --no-prefix -- "$raddle" train "${small[@]}" --steps 2 --json
is status $status 0
near "loss under raddle run" "$(values loss)" "$loss"

call run -n 2 -- "$raddle" train "${small[@]}" --steps 2 --ranks 3
is status $status 2
has err "--ranks says 3, and this process was started as one of 2 ranks"

export WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$$ TORCHELASTIC_RUN_ID=$mark
RANK=1 "$raddle" train "${small[@]}" --steps 2 --json >other 2>&1 &
RANK=0 call train "${small[@]}" --steps 2 --json
wait
is status $status 0
near "loss under torchrun" "$(values loss)" "$loss"
is "what the other rank says" "$(cat other)" ""
unset WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID

cat >settings.toml <<TOML
data = ["$root/README.md", '$root/src']
ranks = 2
json = true

[training]
max_context_length = 64
num_tokens_per_train_step = 256
steps = 100

[debug]
seed = 42
TOML
call train --config settings.toml --steps 2
is status $status 0
near "loss by a file of settings" "$(values loss)" "$loss"

# Too little data is repeated, and that is said once.
printf 'a few words, which are more than one row and less than four rows of them' >few
call train --data few --seq 32 --tokens 128 --steps 2 --json --seed 1 --ranks 2
is status $status 0
is "warnings" "$(cat err)" \
    "raddle train: warning: the data has 2 rows of 32 tokens and a step takes 4: rows are repeated"
