# The first examples run on one to four ranks and say what their comments promise.
# SPDX-License-Identifier: BSD-3-Clause
set -u

build=${RADDLE_BUILD:?RADDLE_BUILD names no build folder}
raddle=$build/cli/raddle
out=${TEST_TEMP:?TEST_TEMP names no folder for files}/out

for program in "$raddle" "$build/examples/01_hello_ranks" \
    "$build/examples/02_groups" "$build/examples/03_mesh"; do
    if [ ! -x "$program" ]; then
        echo "skipped: there is no $program"
        exit 77
    fi
done

# says N WORDS EXAMPLE RANKS: N lines of its output hold the words.
says() {
    "$raddle" run -n "$4" -- "$build/examples/$3" >"$out" 2>&1 ||
        { echo "$3 on $4 ranks: status $?"; cat "$out"; exit 1; } >&2
    [ "$(grep -c -F -e "$2" "$out")" = "$1" ] ||
        { echo "$3 on $4 ranks: not $1 x '$2'"; cat "$out"; exit 1; } >&2
}

says 1 "of 1: the sum is 1" 01_hello_ranks 1
says 2 "of 2: the sum is 11" 01_hello_ranks 2
says 3 "of 3: the sum is 111" 01_hello_ranks 3
says 4 "of 4: the sum is 1111" 01_hello_ranks 4

says 1 "has no pairs" 02_groups 1
says 1 "world rank 0 is rank 1 of 2 in 'pair': its first is world rank 1" \
    02_groups 2
says 2 "in 'pair, second lane': its first is world rank 2, which says 2" \
    02_groups 3
says 3 "in 'triple': its first is world rank 3, which says 3" 02_groups 4
says 3 "is not in group" 02_groups 4

says 1 "rank 0 is 0 of 1 along dp,tp: the sum is 1" 03_mesh 1
says 3 "of 3 along tp: the sum is 111" 03_mesh 3
says 2 "of 2 along dp: the sum is 1010" 03_mesh 4
says 2 "of 2 along tp: the sum is 1100" 03_mesh 4
says 1 "rank 3 is 3 of 4 along dp,tp: the sum is 1111" 03_mesh 4
