# So is its pkg-config file, also after the whole installation was moved.
# SPDX-License-Identifier: BSD-3-Clause
set -eu
source=$(dirname "$0")/outside

cmake --install "$RADDLE_BUILD" --prefix "$PWD/before" >install.log
mv before prefix
library=$(find "$PWD/prefix" -name libraddle.so.0 -exec dirname {} +)
export PKG_CONFIG_PATH=$library/pkgconfig

[ "$(pkg-config --modversion raddle)" = 0.1.0 ]
# shellcheck disable=SC2046 # the flags are words
${CC:-cc} -std=c11 "$source/outside.c" $(pkg-config --cflags --libs raddle) -o outside
[ "$(LD_LIBRARY_PATH=$library ./outside)" = "1 rank, sum 1" ]
