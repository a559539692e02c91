# Reads a log of ctest, then its JUnit file; appends one line for each test to
# the file `results` (status, arm, name, why) and prints the output of those
# that failed. Given: arm, results.
# SPDX-License-Identifier: BSD-3-Clause

# "   10 - zz/zz.hangs (Timeout)" in the list at the end of the log
FNR == NR {
    if ($0 ~ /^\t *[0-9]+ - .* \(.*\)/) {
        how = $0
        sub(/^.* \(/, "", how)
        sub(/\).*$/, "", how)
        ended[$3] = how
    }
    next
}

function plain(text)
{
    gsub(/&lt;/, "<", text)
    gsub(/&gt;/, ">", text)
    gsub(/&quot;/, "\"", text)
    gsub(/&apos;/, "'", text)
    gsub(/&amp;/, "\\&", text)
    return text
}

function attribute(name)
{
    if (!match($0, name "=\"[^\"]*\""))
        return ""
    return plain(substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 3))
}

/<testcase / {
    test = attribute("name")
    status = attribute("status") == "run" ? "passed" : "failed"
    why = status == "failed" ? ended[test] : ""
    output = ""
}

# Anything else that ctest calls skipped did not run though it should have.
/<skipped / && attribute("message") ~ /^SKIP_RETURN_CODE=/ {
    status = "skipped"
}

/<system-out>/ {
    inside = 1
    sub(/^.*<system-out>/, "")
}

inside {
    last = sub(/<\/system-out>.*$/, "")
    line = plain($0)
    if (status == "skipped" && sub(/^.*skipped: /, "", line))
        why = line
    output = output line (last ? "" : "\n")
    if (last)
        inside = 0
}

/<\/testcase>/ {
    gsub(/\t/, " ", why)
    printf "%s\t%s\t%s\t%s\n", status, arm, test, why >> results
    if (status == "failed")
        printf "--- %s (%s)\n%s", test, why, output
}
