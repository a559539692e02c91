# Writes each block ```c of Markdown files as a file into `folder`, with a #line
# that makes errors point here: all of README.md, elsewhere those with a main().
# SPDX-License-Identifier: BSD-3-Clause

function finish()
{
    if (inside && (FILENAME ~ /README\.md$/ || text ~ /int main\(/)) {
        path = folder "/" (++n) ".c"
        printf "#line %d \"%s\"\n%s", start, FILENAME, text > path
        close(path)
    }
    inside = 0
}

/^```/ {
    if (inside)
        finish()
    else if (/^```c$/) {
        inside = 1
        start = FNR + 1
        text = ""
    }
    next
}

inside { text = text $0 "\n" }
