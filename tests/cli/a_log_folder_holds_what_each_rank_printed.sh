# --log-dir: two files a rank, byte for byte, beside what comes out; never mixed with
# those of an earlier run.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

# refused TEXT: the last run started nothing, and says so in one sentence.
refused()
{
    is status $status 2
    is output "$(cat out)" ""
    is lines "$(grep -c . err)" 1
    has err "$1"
}

run -n 3 --log-dir new/logs sh -c 'echo out $RANK; echo err $RANK >&2; printf end'
is status $status 0
is files "$(ls new/logs | paste -sd ' ')" \
    "rank-0.err rank-0.out rank-1.err rank-1.out rank-2.err rank-2.out"
for r in 0 1 2; do
    is "the output of $r" "$(cat new/logs/rank-$r.out)" "out $r"$'\n'end
    is "the errors of $r" "$(cat new/logs/rank-$r.err)" "err $r"
done
is output "$(sort out)" $'[0] end\n[0] out 0\n[1] end\n[1] out 1\n[2] end\n[2] out 2'

# An earlier run's files stay as they are, also one of another number of ranks.
run -n 1 --log-dir new/logs echo later
refused "'new/logs' holds the logs of an earlier run"
run -n 9 --log-dir new/logs/ echo later
refused "'new/logs/' holds the logs of an earlier run"
is "the old file" "$(cat new/logs/rank-0.out)" $'out 0\nend'
is files "$(ls new/logs | wc -l)" 6
mkdir beside
echo old >beside/rank-1.err
run -n 2 --log-dir beside echo later
refused "'beside' holds the logs of an earlier run"
is files "$(ls beside)" rank-1.err

# A program that cannot be run leaves no file that would be in the way.
printf 'no program\n' >broken
chmod +x broken
run -n 2 --log-dir twice ./broken
is status $status 2
run -n 2 --log-dir twice echo fine
is status $status 0
is output "$(sort out)" $'[0] fine\n[1] fine'

# Bytes, and lines that come out in pieces.
run -n 1 --log-dir bytes sh -c 'head -c 200000 /dev/zero | tr "\0" x; printf "\0\377\n"'
is status $status 0
is bytes "$(wc -c <bytes/rank-0.out)" 200003
is "the last bytes" "$(tail -c 3 bytes/rank-0.out | od -An -tx1 | tr -d ' ')" 00ff0a

# Of ranks that were killed too, what they printed before.
run -n 2 --log-dir killed sh -c 'echo last words; kill -KILL $$'
is status $status 137
is "last words" "$(cat killed/rank-*.out)" $'last words\nlast words'

# Places where no folder can be.
run -n 2 --log-dir /proc/self/logs true
refused "cannot write logs into '/proc/self/logs': "
echo >plain
run -n 2 --log-dir plain true
refused "'plain': Not a directory (ENOTDIR)"
run -n 2 --log-dir plain/below true
refused "'plain/below': Not a directory (ENOTDIR)"
run -n 2 --log-dir '' true
refused "--log-dir takes a folder, and got an empty name"
run -n 2 --log-dir "$(printf '%5000s' x)" true
refused "File name too long (ENAMETOOLONG)"

# A folder that vanishes costs the logs and nothing else.
run -n 2 --log-dir gone sh -c '[ $RANK = 1 ] || rm -r gone; sleep 0.3; echo done'
is status $status 0
is output "$(sort out)" $'[0] done\n[1] done'
is "standard error" "$(cat err)" \
    "raddle run: 4 of 4 logs in 'gone' were removed while the job ran, and are lost"
nothing_is_left
