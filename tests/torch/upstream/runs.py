# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests through workers, and keeps what became of each."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROLES = ("gloo", "mpi", "nccl")
"""Backends for which the suite is told to take ours, in the order of trial."""

Outcomes = dict[str, dict[str, dict]]
"""By test, by backend: a line of the worker, and the role under "role"."""

_HERE = Path(__file__).parent


def names() -> list[str]:
    """The names of the suite's tests, asked of a process of its own."""
    code = "import worker; print(*worker.names())"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=_HERE, check=True, capture_output=True, text=True
    ).stdout.split()


def compare(tests: list[str], ranks: int, options: argparse.Namespace) -> Outcomes:
    """Runs tests on each backend, in further roles while all leave them out."""
    outcomes: Outcomes = {}
    left = tests
    for role in options.roles:
        if left:
            _run_role(left, role, ranks, options, outcomes)
        left = [test for test in tests if _left_out(outcomes.get(test, {}))]
    return outcomes


def _left_out(by_backend: dict[str, dict]) -> bool:
    return all(line["outcome"] == "skipped" for line in by_backend.values())


def _run_role(
    tests: list[str], role: str, ranks: int, options: argparse.Namespace, outcomes: Outcomes
) -> None:
    """One worker a backend, side by side: a test waits more than it works."""
    with ThreadPoolExecutor() as pool:
        jobs = {
            backend: pool.submit(_work, tests, backend, role, ranks, options.seconds)
            for backend in options.backends
        }
        for backend, job in jobs.items():
            for line in job.result():
                outcomes.setdefault(line["name"], {})[backend] = line | {"role": role}


def _work(tests: list[str], backend: str, role: str, ranks: int, seconds: int) -> list[dict]:
    """What became of each test; a worker that dies is started anew behind it."""
    lines: list[dict] = []
    while len(lines) < len(tests):
        more = _one_worker(tests[len(lines) :], backend, role, ranks, seconds)
        lines += more
    return lines


def _one_worker(
    tests: list[str], backend: str, role: str, ranks: int, seconds: int
) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        command = [sys.executable, str(_HERE / "worker.py")]
        command += [backend, role, str(ranks), str(seconds), log]
        done = subprocess.run(
            command, input="\n".join(tests), stdout=subprocess.PIPE, text=True
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if len(lines) < len(tests):
            lines.append(_lost(tests[len(lines)], done.returncode, log))
    return lines


def _lost(test: str, status: int, log: str) -> dict:
    with open(log, errors="replace") as file:
        text = file.read()[-8000:]
    reason = f"the worker ended with {status} in this test\n{text}"
    return {"name": test, "outcome": "failed", "reason": reason, "seconds": 0}
