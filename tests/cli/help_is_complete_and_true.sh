# Every way to ask for help gives the same text; each command and option that it
# names exists.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

shows()
{
    call "$@"
    is "status of $*" $status 0
    is "standard error of $*" "$(cat err)" ""
}

shows --help
cp out commands
shows -h
cmp out commands || fail "-h differs from --help"
shows help
cmp out commands || fail "help differs from --help"

# The indented words up to "Options:".
names=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' commands)
is commands "$(echo $names)" "run train dump bench version help"
for name in $names; do
    shows "$name" --help
    mv out by-option
    shows help "$name"
    cmp out by-option || fail "help $name differs from $name --help"
    has out "Usage: raddle $name"
    [ "$(awk 'length > 80' out)" = "" ] || fail "$name: a line is too long"
done

shows version
cp out version
shows --version
cmp out version || fail "--version differs from version"
grep -qx 'raddle [0-9]*\.[0-9]*\.[0-9]*' version || fail "no version: $(cat version)"

# What help run says of its options.
shows run -n 2 true
shows run --ranks 2 true
shows run --ranks=2 --grace 0.5 --no-prefix -- true
shows run -n 1 --grace 86400 --log-dir logs true
shows run -h
[ "$(grep -oE -- '--[a-z-]+' out | sort -u | paste -sd ' ')" = \
    "--dump --grace --help --log-dir --no-prefix --ranks" ] || fail "help names other options"

# The program's own options are left alone, with and without --.
shows run -n 1 --no-prefix echo --ranks -n --help
is output "$(cat out)" "--ranks -n --help"
shows run -n 1 --no-prefix -- echo -- -h
is output "$(cat out)" "-- -h"

"$raddle" --help >/dev/full 2>err
is "status with a full disk" $? 1
has err ENOSPC
