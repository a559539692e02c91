# Whatever is wrong with the arguments: status 2, one line that says what, with
# what was given, and nothing has been started.
# SPDX-License-Identifier: BSD-3-Clause
source "${0%/*}/../support/cli.sh"

printf '#!/bin/sh\ntouch started\n' >program
chmod +x program
mkdir folder
printf '#!/bin/sh\n' >not-executable
printf 'no program\n' >no-program
chmod +x no-program
printf '#!/no/interpreter\n' >no-interpreter
chmod +x no-interpreter

# refused BEGINNING PART... -- ARGUMENTS
refused()
{
    local beginning=$1 parts=()
    shift

    while [ "$1" != -- ]; do
        parts+=("$1")
        shift
    done
    shift
    call "$@"
    is "status of $*" $status 2
    lines_are err 1 || fail "$*: not one line"
    is "output of $*" "$(cat out)" ""
    case $(cat err) in
    "$beginning "*) ;;
    *) fail "$*: does not begin '$beginning'" ;;
    esac
    for part in "${parts[@]}"; do
        has err "$part"
    done
    [ ! -e started ] || fail "$*: started the program"
    nothing_is_left
}

refused raddle: "'raddle --help'" --
refused raddle: "'rnu'" "'run'" "'raddle --help'" -- rnu -n 2 ./program
refused raddle: "'verzion'" "'version'" -- verzion
refused raddle: "'--hlep'" "'--help'" -- --hlep
refused "raddle help:" "'rum'" "'run'" -- help rum
refused "raddle help:" "'version'" -- help run version
refused "raddle version:" "'now'" -- version now

help="'raddle run --help'"
refused "raddle run:" "how many ranks" "1 to 1024" "$help" -- run ./program
refused "raddle run:" "-n" "$help" -- run -n
for n in 0 -1 x 4x 1.5 '' ' 4' +4 0x4 1025 100000 99999999999999999999; do
    refused "raddle run:" "1 to 1024" "'$n'" "$help" -- run -n "$n" ./program
    refused "raddle run:" "1 to 1024" "'$n'" "$help" -- run --ranks="$n" ./program
done
refused "raddle run:" "'--rnaks'" "'--ranks'" "$help" -- run --rnaks 2 ./program
refused "raddle run:" "'--no-prefx'" "'--no-prefix'" -- run --no-prefx -n 2 ./program
refused "raddle run:" "'--graec'" "'--grace'" -- run -n 2 --graec=3 ./program
refused "raddle run:" "'-N'" "'-n'" -- run -N 2 ./program
refused "raddle run:" "'-x'" -- run --no-prefix -xn 2 ./program
refused "raddle run:" "--no-prefix takes no value" -- run --no-prefix=1 -n 2 ./program
for grace in -1 x 1e3 inf nan . '' 86401; do
    refused "raddle run:" "0 to 86400" "'$grace'" -- \
        run -n 2 --grace "$grace" ./program
done

refused "raddle run:" "which program" "$help" -- run -n 2
refused "raddle run:" "which program" "$help" -- run -n 2 --
refused "raddle run:" "no program './nothing'" -- run -n 2 ./nothing
refused "raddle run:" "no program 'no-such-program' in PATH" -- \
    run -n 2 no-such-program
refused "raddle run:" "'./program'" -- run -n 2 program
refused "raddle run:" "empty" -- run -n 2 ''
refused "raddle run:" "'./folder' is a directory" -- run -n 2 ./folder
refused "raddle run:" "'./program/x'" "ENOTDIR" -- run -n 2 ./program/x
refused "raddle run:" "'./not-executable'" "chmod +x" -- run -n 2 ./not-executable
PATH=$PWD:$PATH refused "raddle run:" "'not-executable'" "chmod +x" -- \
    run -n 2 not-executable

# What only exec can tell.
refused "raddle run:" "'./no-program'" ENOEXEC "#!" -- run -n 4 ./no-program
refused "raddle run:" "'./no-interpreter'" ENOENT interpreter -- \
    run -n 4 ./no-interpreter

# One line, whatever was typed.
refused "raddle run:" "'a?b?c'" -- run -n $'a\nb\033c' ./program
