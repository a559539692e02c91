#!/usr/bin/env bash
# compare.sh BEFORE AFTER [PAIRS]: runs two builds of a benchmark by turns, 9 times
# each, and prints for each of their rows: name, ranks, bytes, medians before and
# after, lower quartile, median and upper quartile of the ratios after/before.
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
before=$1
after=$2
pairs=${3:-9}
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

once()
{
    "$2" | awk -v pair="$3" -v which="$1" '{ print pair "\t" which "\t" $0 }' >>"$rows"
}

for ((i = 0; i < pairs; i++)); do
    # Each goes first as often as the other.
    if ((i % 2)); then
        once before "$before" $i
        once after "$after" $i
    else
        once after "$after" $i
        once before "$before" $i
    fi
done
awk -F '\t' '
    # The part-th quantile of the n numbers that are in the text.
    function quantile(text, part,    n, v, i, j, t) {
        n = split(text, v, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
                t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
            }
        return v[int(part * (n - 1) + 0.5) + 1]
    }
    {
        key = $3 "\t" $4 "\t" $5
        if (!(key in order)) { order[key] = ++keys; name[keys] = key }
        value[key, $1, $2] = $6
        all[key, $2] = all[key, $2] " " $6
        if (((key, $1, "before") in value) && ((key, $1, "after") in value))
            ratio[key] = ratio[key] " " value[key, $1, "after"] / value[key, $1, "before"]
    }
    END {
        for (i = 1; i <= keys; i++) {
            key = name[i]
            printf "%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n", key,
                quantile(all[key, "before"], 0.5), quantile(all[key, "after"], 0.5),
                quantile(ratio[key], 0.25), quantile(ratio[key], 0.5),
                quantile(ratio[key], 0.75)
        }
    }' "$rows"
