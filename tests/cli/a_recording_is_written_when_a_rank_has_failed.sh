# --dump: what all ranks did last, when one has failed; told before the start if it
# cannot be; not there when nothing failed, and what was there stays.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"
roles=$RADDLE_BUILD/tests/cli/roles

run -n 3 --dump job.json "$roles" rank_0_sums_two_numbers_more
[ $status != 0 ] || fail "the job has not failed"
is "ranks" "$(grep -o '"rank": [0-9]*' job.json | sort -u | paste -sd ,)" \
    '"rank": 0,"rank": 1,"rank": 2'
has job.json '"status": "RDL_MISMATCH"'

# Nothing failed: no file is left, and an old one is as it was.
run -n 2 --dump none.json true
is status $status 0
[ ! -e none.json ] || fail "an empty recording is left"
echo old >old.json
run -n 2 --dump old.json true
is "the old recording" "$(cat old.json)" old
run -n 3 --dump old.json "$roles" rank_0_sums_two_numbers_more
has old.json '"rank": 2'
! grep -q old old.json || fail "the old recording is not replaced"

run -n 2 --dump nowhere/job.json echo started
is status $status 2
is "lines on standard error" "$(wc -l <err)" 1
has err "cannot write the recording 'nowhere/job.json': No such file or directory (ENOENT)"
is "standard output" "$(cat out)" ""
run -n 2 --dump "" echo started
is status $status 2
has err "--dump takes a file, and got an empty name"
