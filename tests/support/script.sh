# shellcheck shell=bash
# Runs a test that is a script: NAME.sh passes with exit status 0 and is skipped
# with 77. Where NAME.stdout or NAME.stderr stand beside it, what it wrote must be
# just that. Its folder for files is $TEST_TEMP, empty and removed afterwards.
# SPDX-License-Identifier: BSD-3-Clause
set -u
script=$1
name=${script%.sh}
TEST_TEMP=$(mktemp -d) || exit 1
export TEST_TEMP
trap 'rm -rf "$TEST_TEMP" "$TEST_TEMP.stdout" "$TEST_TEMP.stderr"' EXIT

cd "$TEST_TEMP" || exit 1
bash "$script" >"$TEST_TEMP.stdout" 2>"$TEST_TEMP.stderr" </dev/null
status=$?

cat "$TEST_TEMP.stdout"
cat "$TEST_TEMP.stderr" >&2
if [ $status -ne 0 ]; then
    [ $status -eq 77 ] || echo "$script: exit status $status" >&2
    exit $status
fi
for stream in stdout stderr; do
    [ -e "$name.$stream" ] || continue
    if ! diff -u "$name.$stream" "$TEST_TEMP.$stream"; then
        echo "$script: $stream is not what $name.$stream says" >&2
        status=1
    fi
done
exit $status
