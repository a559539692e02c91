# A line of up to 65,536 bytes is whole, a longer one comes in pieces of that size,
# one without its end gets it; no byte is lost.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

# line_lengths: of out, without the prefix.
line_lengths()
{
    sed 's/^\[0\] //' out | awk '{ print length }' | paste -sd ' '
}

run -n 3 sh -c 'printf "no end"; printf "nor here" >&2'
is status $status 0
is output "$(sort out)" $'[0] no end\n[1] no end\n[2] no end'
is "standard error" "$(sort err)" $'[0] nor here\n[1] nor here\n[2] nor here'

run -n 2 sh -c 'printf "a\n\n\nb"'
is output "$(sort out)" $'[0] \n[0] \n[0] a\n[0] b\n[1] \n[1] \n[1] a\n[1] b'

for bytes in 65535 65536; do
    run -n 1 sh -c "head -c $bytes /dev/zero | tr '\\0' a; echo; echo end"
    is "lengths of $bytes" "$(line_lengths)" "$bytes 3"
    run -n 1 sh -c "head -c $bytes /dev/zero | tr '\\0' a"
    is "lengths of $bytes without end" "$(line_lengths)" "$bytes"
done
run -n 1 sh -c "head -c 200000 /dev/zero | tr '\\0' a; echo; echo end"
is "lengths of 200000" "$(line_lengths)" "65536 65536 65536 3392 3"

# Long lines of several ranks do not mix, and every byte value passes.
run -n 4 sh -c 'for i in 1 2 3 4 5; do
    head -c 50000 /dev/zero | tr "\0" $RANK; echo; done'
is lines "$(wc -l <out)" 20
for rank in 0 1 2 3; do
    line="[$rank] $(head -c 50000 /dev/zero | tr '\0' $rank)"
    is "lines of rank $rank" "$(grep -cxF -f - out <<<"$line")" 5
done
for i in {0..255}; do
    printf "\\x$(printf %02x "$i")"
done >bytes
echo >>bytes
run -n 1 --no-prefix cat bytes
is status $status 0
cmp out bytes || fail "bytes have changed"

# What was printed before a rank was killed arrives.
run -n 2 sh -c 'seq 1 5000; kill -KILL $$'
is "lines before the end" "$(wc -l <out)" 10000
