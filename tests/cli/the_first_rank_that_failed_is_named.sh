# The exit status is that of the first rank that failed, which the last line on
# standard error names, together with how many others were ended.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

# ends_with STATUS LINE: of the last run.
ends_with()
{
    is status $status "$1"
    is "the last line" "$(tail -n 1 err)" "$2"
    nothing_is_left
}

run -n 4 true
ends_with 0 ""
run -n 1 sh -c 'exit 3'
ends_with 3 "raddle run: rank 0 failed first: exit status 3"
run -n 4 sh -c '[ $RANK != 2 ] || exit 255'
ends_with 255 "raddle run: rank 2 failed first: exit status 255"

# Others are ended after 2 seconds.
run -n 4 sh -c '[ $RANK != 3 ] || exit 7; exec sleep 60'
ends_with 7 "raddle run: rank 3 failed first: exit status 7; 3 others were still \
running and were ended"
within 1900 4000
run -n 4 sh -c '[ $RANK != 1 ] || kill -KILL $$; [ $RANK = 0 ] || exit 0
    exec sleep 60'
ends_with 137 "raddle run: rank 1 failed first: killed by signal 9 (Killed); 1 other \
was still running and was ended"
run -n 2 sh -c '[ $RANK != 1 ] || kill -SEGV $$; exec sleep 60'
is status $status 139
has err "rank 1 failed first: killed by signal 11 (Segmentation fault)"

# They are not ended if they end by themselves, and do not take its place.
run -n 4 sh -c '[ $RANK != 2 ] || exit 5; sleep 0.5; exit 6'
ends_with 5 "raddle run: rank 2 failed first: exit status 5"
within 400 1800
run -n 4 sh -c '[ $RANK != 2 ] || exit 5; sleep 0.5; kill -KILL $$'
ends_with 5 "raddle run: rank 2 failed first: exit status 5"

# Who ended having heard of nothing is the first, however soon another is killed.
run -n 3 sh -c '[ $RANK != 2 ] || { : >ended; exit 1; }
    [ $RANK = 1 ] || exec sleep 60
    until [ -e ended ]; do :; done; sleep 0.03; kill -KILL $$'
ends_with 1 "raddle run: rank 2 failed first: exit status 1; 1 other was still \
running and was ended"

# A rank that ends well does not end the others.
run -n 3 sh -c '[ $RANK = 1 ] || exit 0; sleep 2.5; echo done'
ends_with 0 ""
is output "$(cat out)" "[1] done"

# Behind a shell the shell's status counts.
run -n 2 sh -c 'sh -c "exit 4"; code=$?; [ $RANK = 0 ] || exit $code'
ends_with 4 "raddle run: rank 1 failed first: exit status 4"

# Who closed its world and then failed, after those that were told of the closing.
run -n 3 "$RADDLE_BUILD/tests/cli/roles" rank_1_leaves_and_then_fails
ends_with 4 "raddle run: rank 1 failed first: exit status 4"
has err "rank 1 closed its world"
