# SPDX-License-Identifier: BSD-3-Clause
"""Prints what became of the tests, backends side by side."""

import os
import re
from collections import Counter
from pathlib import Path

from runs import ROLES, Outcomes

JUDGE = "gloo"

_LIST = Path(__file__).with_name("differences.txt")


def tell(outcomes: Outcomes, ranks: int, verbose: bool) -> int:
    """Prints counts and differences; the number of those without a reason."""
    _tell_counts(outcomes, ranks)
    known = _known(ranks)
    bad = 0
    for test, by_backend in outcomes.items():
        if verbose:
            _tell_test(test, by_backend)
        for backend, line in by_backend.items():
            if backend == JUDGE or not _is_worse(line, by_backend.get(JUDGE)):
                continue
            reason = known.get(test)
            bad += reason is None
            print(f"  {backend} {line['outcome']} {test}: {reason or 'NOT EXPECTED'}")
            if reason is None:
                print(_indented(line["reason"]))
    for test in known:
        if test in outcomes and not _differs(outcomes[test]):
            print(f"  {test} stands in {_LIST.name}, and is the same on all")
    return bad


def note(outcomes: Outcomes, ranks: int, path: str) -> None:
    """Appends a line for each test to the file: status, arm, name, why. A difference that
    has its reason counts as skipped."""
    known = _known(ranks)
    arm = os.environ.get("RADDLE_ARM", "torch")
    with open(path, "a") as file:
        for test, by_backend in outcomes.items():
            for backend, line in by_backend.items():
                if backend == JUDGE:
                    continue
                status, why = _status(line, by_backend.get(JUDGE), known.get(test))
                words = (status, arm, f"upstream.{test}[{backend}, {ranks} ranks]", why)
                file.write("\t".join(words) + "\n")


def _status(line: dict, judge: dict | None, reason: str | None) -> tuple[str, str]:
    said = _gist(line["reason"]) if line["outcome"] != "passed" else ""
    if _is_worse(line, judge):
        return ("failed", said) if reason is None else ("skipped", reason)
    if line["outcome"] == "failed":
        return "skipped", f"fails on {JUDGE} too: {said}"
    return line["outcome"], said


def _gist(text: str) -> str:
    """Of what a test said, the last error, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [found.group() for line in lines if (found := re.search(r"\w+Error: .*", line))]
    return ((errors or lines or [""])[-1])[:200].replace("\t", " ")


def _tell_counts(outcomes: Outcomes, ranks: int) -> None:
    print(f"{ranks} ranks{'':10}passed  failed skipped seconds")
    backends = sorted({backend for line in outcomes.values() for backend in line})
    for role in ROLES:
        for backend in backends:
            lines = [by[backend] for by in outcomes.values() if backend in by]
            lines = [line for line in lines if line["role"] == role]
            if lines:
                _tell_row(f"  {backend} as {role}", lines)


def _tell_row(title: str, lines: list[dict]) -> None:
    count = Counter(line["outcome"] for line in lines)
    seconds = sum(line["seconds"] for line in lines)
    print(
        f"{title:<16}{count['passed']:8}{count['failed']:8}{count['skipped']:8}{seconds:8.0f}"
    )


def _tell_test(test: str, by_backend: dict[str, dict]) -> None:
    words = [f"{b} {line['outcome']} {line['seconds']} s" for b, line in by_backend.items()]
    role = next(iter(by_backend.values()))["role"]
    print(f"  {test} as {role}: {', '.join(words)}")
    for backend, line in by_backend.items():
        if line["outcome"] != "passed":
            print(_indented(f"{backend}: {line['reason']}"))


def _is_worse(line: dict, judge: dict | None) -> bool:
    """What gloo passes must pass; and what gloo has no opinion on, too."""
    if line["outcome"] == "failed":
        return judge is None or judge["outcome"] != "failed"
    return line["outcome"] == "skipped" and judge is not None and judge["outcome"] == "passed"


def _differs(by_backend: dict[str, dict]) -> bool:
    return len({line["outcome"] for line in by_backend.values()}) > 1


def _known(ranks: int) -> dict[str, str]:
    """Reasons by test, of differences which are expected on so many ranks."""
    known = {}
    for line in _LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            test, numbers, reason = line.split(maxsplit=2)
            if numbers == "all" or str(ranks) in numbers.split(","):
                known[test] = reason
    return known


def _indented(text: str) -> str:
    return "\n".join("      " + line for line in text.strip().splitlines())
