# The longest functions and files, and averages. Relies on the format: a
# function's braces stand alone in the first column.
# SPDX-License-Identifier: BSD-3-Clause

function longest(lengths, n, title,    i, k, best)
{
    print title
    for (i = 0; i < n; i++) {
        best = ""
        for (k in lengths)
            if (best == "" || lengths[k] > lengths[best])
                best = k
        if (best == "")
            return
        printf "  %5d  %s\n", lengths[best], best
        delete lengths[best]
    }
}

FNR == 1 { n_files++ }
{ files[FILENAME] = FNR; lines++ }
/^[A-Za-z_].*\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
/^\{$/ { start = FNR }
/^\}$/ && start {
    functions[FILENAME ": " name] = FNR - start - 1
    n_functions++
    in_functions += FNR - start - 1
    start = 0
}

END {
    printf "%d files, %d lines, %d functions of %.1f lines on average\n", n_files,
        lines, n_functions, n_functions ? in_functions / n_functions : 0
    longest(functions, 15, "longest functions:")
    longest(files, 15, "longest files:")
}
