# Prints the functions that public headers declare RDL_API or RDL_CALL.
# SPDX-License-Identifier: BSD-3-Clause

# Without comments and preprocessor lines; declarations may span lines.
{
    line = $0
    while (1) {
        if (in_comment) {
            if (!match(line, /\*\//))
                next
            line = substr(line, RSTART + 2)
            in_comment = 0
        }
        if (!match(line, /\/\*/))
            break
        rest = substr(line, RSTART + 2)
        before = substr(line, 1, RSTART - 1)
        if (match(rest, /\*\//)) {
            line = before " " substr(rest, RSTART + 2)
            continue
        }
        line = before
        in_comment = 1
        break
    }
    if (line ~ /^[ \t]*#/ || continued) {
        continued = line ~ /\\$/
        next
    }
    text = text " " line
}

END {
    n = split(text, declarations, ";")
    for (i = 1; i <= n; i++)
        if (declarations[i] ~ /RDL_(API|CALL) / &&
            match(declarations[i], /rdl_[a-z0-9_]+ *\(/)) {
            name = substr(declarations[i], RSTART, RLENGTH - 1)
            sub(/ +$/, "", name)
            print name
        }
}
