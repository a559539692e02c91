# The demo program: the same losses on every number of ranks, against an entropy
# counted here; every pair counted once; a sentence for each wrong input.
# SPDX-License-Identifier: BSD-3-Clause
set -u

build=${RADDLE_BUILD:?RADDLE_BUILD names no build folder}
demo=$build/examples/first_light
raddle=$build/cli/raddle

for program in "$demo" "$raddle"; do
    if [ ! -x "$program" ]; then
        echo "skipped: there is no $program"
        exit 77
    fi
done

work=${TEST_TEMP:?TEST_TEMP names no folder for files}
text=$work/text
LC_ALL=C
export LC_ALL

appender=
trap '[ -z "$appender" ] || kill "$appender"' EXIT
trap 'exit 1' HUP INT TERM

wrong() {
    echo "first_light.sh: $*" >&2
    exit 1
}

# on N ARGUMENT...: the demo on N ranks; $work/out and $work/err; the status.
on() {
    ranks=$1
    shift
    if [ "$ranks" = 1 ]; then
        "$demo" "$@" >"$work/out" 2>"$work/err"
    else
        "$raddle" run -n "$ranks" -- "$demo" "$@" >"$work/out" 2>"$work/err"
    fi
}

# objects: the JSON lines of the last run, without the launcher's prefix.
objects() {
    sed -n 's/^[^{]*{/{/p' "$work/out"
}

# value EVENT NAME: a number of the last run.
value() {
    objects | sed -n "s/^{\"event\": \"$1\".*\"$2\": \([^,}]*\).*/\1/p"
}

# ended GOT STATUS WORDS: the last run ended with this status, saying so once.
ended() {
    [ "$1" = "$2" ] ||
        wrong "status $1 instead of $2 on $ranks ranks: $(cat "$work/err")"
    said=$(grep -c -F -e "$3" "$work/err")
    [ "$said" = 1 ] ||
        wrong "'$3' is said $said times on $ranks ranks: $(cat "$work/err")"
}

# refused RANKS WORDS ARGUMENT...: the demo ends with status 2 and this sentence.
refused() {
    ranks=$1 words=$2
    shift 2
    on "$ranks" "$@"
    ended $? 2 "$words"
}

# Prose of which no length divides by 2, 3 or 4, in folders and names of any
# kind, among what must be skipped.
mkdir -p "$text/a folder/deep" "$text/.hidden"
awk 'BEGIN {
    n = split("the weaver lays warp threads in a toothed bar so that they " \
              "wind on evenly and never tangle, in order. One\n", word, " ")
    for (i = 0; i < 20000; i++) {
        seed = (seed * 1103 + 12345) % 65536
        printf "%s ", word[int(seed / 65536 * n) + 1]
    }
}' | head -c 70001 >"$work/prose"
head -c 50021 "$work/prose" >"$text/one.txt"
tail -c 19979 "$work/prose" >"$text/a folder/deep/two.txt"
printf 'ab' >"$text/a folder/pair"
printf 'xyzzy' >"$text/zz"
documents="$text/one.txt|$text/a folder/deep/two.txt|$text/a folder/pair|$text/zz"
printf 'hidden text' >"$text/.hidden/file"
printf 'hidden text' >"$text/.file"
printf 'bi\000nary' >"$text/binary"
: >"$text/empty"
printf 'x' >"$text/one byte"
ln -s nowhere "$text/dangling"
ln -s "$text" "$text/a folder/round"

# The pairs of these documents and their entropy, counted another way.
count() {
    (
        IFS='|'
        for document in $documents; do
            echo new
            od -An -v -tu1 -w1 "$document"
        done
    ) | awk '
        $1 == "new" { last = ""; next }
        last != "" { pair[last, $1]++; first[last]++; pairs++ }
        { last = $1 }
        END {
            for (p in pair) {
                split(p, byte, SUBSEP)
                sum += pair[p] * log(first[byte[1]] / pair[p])
            }
            printf "%d %.15g\n", pairs, sum / pairs
        }'
}
expected=$(count)

for ranks in 1 2 3 4; do
    on $ranks --json --every 1 "$text" ||
        wrong "status $? on $ranks ranks: $(cat "$work/err")"
    [ "$(value text documents)" = 4 ] || wrong "not 4 documents: $(objects)"
    [ "$(value text pairs)" = "${expected% *}" ] ||
        wrong "$(value text pairs) pairs instead of ${expected% *}"
    [ "$(value end pairs)" = "${expected% *}" ] || wrong "pairs at the end"
    skipped="$(value text skipped_binary) $(value text skipped_tiny)"
    [ "$skipped $(value text skipped_odd)" = "1 2 2" ] ||
        wrong "not 1 binary, 2 tiny and 2 odd files skipped: $(objects)"
    [ "$(value account dev_shm_bytes)" = 0 ] || wrong "bytes in /dev/shm"
    value step loss >"$work/losses.$ranks"
    awk -v entropy="${expected#* }" -v said="$(value end entropy)" '
        function far(a, b, most) { return a > b + most || a < b - most }
        BEGIN { before = log(256) + 1e-12 }
        NR == 1 && far($1, log(256), 1e-12) { print "the first is", $1; bad = 1 }
        $1 > before { print "it rose to", $1, "at step", NR; bad = 1 }
        { before = $1 }
        END {
            if (NR != 1000) { print NR, "losses"; bad = 1 }
            if (far(said, entropy, 1e-9)) {
                print "entropy", said, "and counted", entropy; bad = 1
            }
            if (before < entropy || before > 1.05 * entropy) {
                print "ended at", before, "over", entropy; bad = 1
            }
            exit bad
        }' "$work/losses.$ranks" >"$work/why" ||
        wrong "the losses on $ranks ranks: $(cat "$work/why")"
    paste "$work/losses.1" "$work/losses.$ranks" | awk '
        ($1 - $2) > 1e-6 * $1 || ($2 - $1) > 1e-6 * $1 { exit 1 }' ||
        wrong "other losses on $ranks ranks than on one"
done

# What a person sees; two documents by name.
on 4 --steps 60 "$text/one.txt" "$text/zz" || wrong "$(cat "$work/err")"
[ "$(wc -l <"$work/out")" -le 60 ] || wrong "more than 60 lines"
for words in "the world     1111" "11 101 110 1001 1010 1100" \
    "500 x 1111 and 500 x 2222" "2 documents, 50,026 bytes, 50,024 byte pairs"; do
    grep -q -F "$words" "$work/out" || wrong "no '$words': $(cat "$work/out")"
done
on 8 --steps 2 "$text" || wrong "8 ranks: $(cat "$work/err")"

# Wrong input.
mkdir "$work/nothing"
mkfifo "$work/pipe"
for ranks in 1 3; do
    refused $ranks "'$text/empty' is empty" "$text/one.txt" "$text/empty"
    refused $ranks "'$text/one byte' has one byte" "$text/one byte"
    refused $ranks "cannot read '$work/none': No such file" "$work/none"
    refused $ranks "cannot read '$text/dangling': No such" "$text/dangling"
    refused $ranks "'$work/pipe' is neither a file nor" "$work/pipe"
    refused $ranks "there is no text in '$work/nothing'" "$work/nothing"
    refused $ranks "there is no flag '--stpes'" --stpes 5 "$text"
    refused $ranks "--steps wants a number from 1 to" --steps 0 "$text"
    refused $ranks "not 'often'" --every often "$text"
    refused $ranks "--steps wants a number" --steps
done
on 3 --help && grep -q usage: "$work/out" || wrong "--help: $(cat "$work/out")"

# A file that grows between the list and the reading. It may do so at another
# time too, and then nothing is wrong: some runs of many are enough.
printf 'it grows' >"$work/grows"
while :; do echo more; done >>"$work/grows" &
appender=$!
for ranks in 1 3; do
    status=0 tries=0
    while [ $status = 0 ] && [ $tries -lt 50 ]; do
        on $ranks --steps 1 "$work/grows"
        status=$?
        tries=$((tries + 1))
    done
    ended $status 1 "'$work/grows' has changed"
done
kill "$appender"
appender=

# What may not be read is never skipped in silence. (root reads everything)
chmod 000 "$text/zz"
if [ -r "$text/zz" ]; then
    echo "not tried, as this user reads everything: a file without permission"
else
    refused 1 "cannot read '$text/zz': Permission denied" "$text/zz"
    refused 3 "cannot read '$text/zz': Permission denied" "$text"
fi
