# Headers, the library under its three names, and what other builds look for; and
# nothing that only this tree needs.
# SPDX-License-Identifier: BSD-3-Clause
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)

cmake --install "$RADDLE_BUILD" --prefix "$PWD/prefix" >install.log
library=$(find prefix -name libraddle.so.0 -exec dirname {} +)

diff -r -x README.md "$root/include" prefix/include
for name in libraddle.so libraddle.so.0.1.0 pkgconfig/raddle.pc \
    cmake/raddle/raddle-config.cmake cmake/raddle/raddle-config-version.cmake; do
    [ -e "$library/$name" ] || { echo "no $library/$name"; exit 1; }
done
objdump -p "$library/libraddle.so" | grep -q 'SONAME *libraddle.so.0$'
[ -z "$(find prefix -name '*internal*' -o -name '*.a')" ]
if [ -e "$RADDLE_BUILD/cli/raddle" ]; then
    # The installed command finds the installed library.
    LD_LIBRARY_PATH='' ldd prefix/bin/raddle | grep -q "$PWD/prefix/.*/libraddle.so.0"
    if [ -e "$RADDLE_BUILD/bench/race" ]; then
        # It finds the benchmarks beside itself.
        prefix/bin/raddle bench race --help | grep -q '^Usage: raddle bench race'
        listed=$(prefix/bin/raddle bench | sed -n '/^Operations/q; s/^  \([a-z]*\) .*/\1/p')
        [ -n "$listed" ]
        for name in $listed speed; do
            [ -x "prefix/libexec/raddle/$name" ] || { echo "no benchmark $name"; exit 1; }
        done
        prefix/bin/raddle bench fence --help | grep -q '^Usage: raddle bench fence'
        prefix/bin/raddle bench barrier --ranks 2 --turns 1 | grep -q 'geomean_vs_floor'
        prefix/bin/raddle bench deaths --rounds 1 --ranks 3 --json | grep -q '"arm":'
    fi
fi
