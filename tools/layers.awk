# Rejects includes that go up. First file: docs/layers.txt, the lowest layer
# first; then C files by their paths from the root.
#
#   src/LAYER         may include "LAYER/..." of its own layer and lower ones
#   src/**/*_test.c   also "support/..."
#   include/raddle    <raddle/...> and the C library
#   users             <raddle/...>, the system, and files of their own folder;
#                     cli also llama's header
#   tests, bench      anything
# SPDX-License-Identifier: BSD-3-Clause

BEGIN {
    split("src include tests support bench cli examples llama python guard", names, " ")
    for (i in names)
        elsewhere[names[i]] = 1
}

FILENAME ~ /layers\.txt$/ {
    if ($1 != "" && $1 !~ /^#/)
        height[$1] = ++layers
    next
}

FNR == 1 {
    split(FILENAME, part, "/")
    top = part[1]
    layer = part[2]
    if (top == "src" && !(layer in height))
        wrong("no layer is named " layer " in docs/layers.txt")
}

function wrong(what)
{
    printf "%s:%d: %s\n", FILENAME, FNR, what
    bad = 1
}

function check_library(name, of)
{
    of = name
    sub(/\/.*/, "", of)
    if (of == "support" && FILENAME ~ /_test\.c$/)
        return
    if (!(of in height) || of == name)
        wrong("\"" name "\" does not begin with a layer")
    else if (height[of] > height[layer])
        wrong(layer " includes \"" name "\" of " of ", which is above it")
}

function check_user(name, of)
{
    of = name
    sub(/\/.*/, "", of)
    if (of in height || of in elsewhere && of != top && (top != "cli" || of != "llama"))
        wrong(top " is a user and includes \"" name "\": public headers only")
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
    match($0, /"[^"]*"/)
    name = substr($0, RSTART + 1, RLENGTH - 2)
    if (name ~ /\.\./)
        wrong("\"" name "\" climbs out of its folder")
    else if (top == "src")
        check_library(name)
    else if (top == "include")
        wrong("a public header includes \"" name "\"")
    else if (top != "tests" && top != "bench")
        check_user(name)
}

/^[ \t]*#[ \t]*include[ \t]*</ {
    match($0, /<[^>]*>/)
    of = substr($0, RSTART + 1, RLENGTH - 2)
    sub(/\/.*/, "", of)
    if (of in height || of == "support")
        wrong("a private header is included with < >")
}

END { exit bad }
