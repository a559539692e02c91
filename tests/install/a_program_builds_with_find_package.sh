# The CMake package of an installation is enough to build and run a program.
# SPDX-License-Identifier: BSD-3-Clause
set -eu
source=$(dirname "$0")/outside

cmake --install "$RADDLE_BUILD" --prefix "$PWD/prefix" >install.log
cmake -S "$source" -B build -G Ninja -DCMAKE_PREFIX_PATH="$PWD/prefix" >cmake.log
cmake --build build >>cmake.log
[ "$(build/outside)" = "1 rank, sum 1" ]
