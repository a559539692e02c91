# Log folders on disks that are full, that fill up while the job runs, or that are
# read-only.
# SPDX-License-Identifier: BSD-3-Clause
if [ -z "${MOUNTS_ARE_OURS:-}" ]; then
    unshare -m true 2>/dev/null || { echo "no mount namespace of our own"; exit 77; }
    MOUNTS_ARE_OURS=1 exec unshare -m bash "$0"
fi
source "${0%/*}/../support/cli.sh"

# mounts ARGUMENTS
mounts()
{
    mount "$@" 2>why || { echo "no disk of our own: $(cat why)"; exit 77; }
}

mkdir full small fixed
mounts -t tmpfs -o size=64k tmpfs full
mounts -t tmpfs -o size=64k tmpfs small
mounts -t tmpfs -o size=64k tmpfs fixed
mounts -o remount,ro fixed
dd if=/dev/zero of=full/filler 2>/dev/null

for folder in full full/below fixed fixed/below; do
    run -n 2 --log-dir $folder echo started
    is "status with $folder" $status 2
    is output "$(cat out)" ""
    is lines "$(grep -c . err)" 1
    has err "cannot write logs into '$folder': "
done
has err "(EROFS)"
is "what is full" "$(find full -type f)" full/filler

# Nothing is lost on the terminal, and the job goes on.
run -n 3 --log-dir small/logs sh -c 'seq 10000; [ $RANK = 2 ] || exit 0; seq 9999'
is status $status 0
is lines "$(wc -l <out)" 39999
for r in 0 1 2; do
    sed -n "s/^\[$r\] //p" out >lines
    [ $r = 2 ] || seq 10000 | cmp - lines || fail "lines of rank $r were lost"
    head -c "$(wc -c <small/logs/rank-$r.out)" lines | cmp - small/logs/rank-$r.out ||
        fail "the log of rank $r has a gap"
done
is warnings "$(grep -c . err)" 1
has err "any more: No space left on device (ENOSPC); the logs of all ranks end here"
nothing_is_left
