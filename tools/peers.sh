# shellcheck shell=bash
# Builds the ranks of peers that `raddle bench --peers` measures. Sourced by ./dev.
# SPDX-License-Identifier: BSD-3-Clause

peers_folder=build/release/bench/peers
peers_flags=(-O3 -march=native -Wall -Wextra -D_GNU_SOURCE -Iinclude -Isrc -Ibench)

# build_peer NAME COMPILER SOURCE FLAGS ...: says so where it cannot be.
build_peer()
{
    local name=$1 compiler=$2 source=$3 log=build/peers.$1.log
    shift 3

    if ! command -v "$compiler" >/dev/null; then
        echo "./dev: no peer $name: there is no $compiler" >&2
        return 0
    fi
    if ! "$compiler" "${peers_flags[@]}" "$source" $peers_folder/rank.o \
        $peers_folder/values.o $peers_folder/wire.o -o "$peers_folder/$name" \
        "$@" >"$log" 2>&1; then
        tail -5 "$log" >&2
        echo "./dev: no peer $name: it does not compile; all of it: $log" >&2
    fi
}

build_peers()
{
    local part

    mkdir -p $peers_folder
    for part in rank values wire; do
        gcc -std=c11 "${peers_flags[@]}" -c bench/speed/$part.c \
            -o $peers_folder/$part.o
    done
    build_peer openmpi mpicc.openmpi bench/peers/mpi.c -std=gnu11
    build_peer mpich mpicc.mpich bench/peers/mpi.c -std=gnu11
    build_peer gloo g++ bench/peers/gloo.cc -std=c++17 -lgloo -lpthread
}
