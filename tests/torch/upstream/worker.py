# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests of PyTorch's own process-group suite on one backend.

Started by the driver beside it, once for each backend and number of ranks:

    worker.py BACKEND ROLE RANKS SECONDS LOG <names >results

The role is the backend for which the suite takes ours: "gloo", or "mpi" for
what gloo lacks, or "nccl" with processors in the place of GPUs (cuda.py).

A line of the input is the name of a test, a line of the output what became of
it, as JSON. Each test has processes of its own, as upstream has it; they are
forked from this one, which has imported PyTorch and started no thread, so that
a test costs tenths of a second and not the seconds of an import.
"""

import json
import multiprocessing
import os
import signal
import sys
import time
import unittest
from typing import Any, TextIO

import cuda
import judged


def main() -> None:
    backend, role, ranks, seconds, log = sys.argv[1:]
    results = os.fdopen(os.dup(1), "w")
    _send_output_to(log)
    _set_environment(role, ranks)
    cases = _cases(backend, role, int(seconds))
    for line in sys.stdin:
        name = line.strip()
        _write(results, _run(cases(name), name, log))


def names() -> list[str]:
    """The names of all tests of the suite, in the order of its file."""
    _set_environment("gloo", "2")
    base = _suite().DistributedTest._DistTestBase
    return [name for name in vars(base) if name.startswith("test")]


def _set_environment(role: str, ranks: str) -> None:
    """What the suite reads when it is imported.

    It leaves tests out by the backend's name. The name is the role here, for
    every backend, so that all are asked for the same tests.
    """
    os.environ["BACKEND"] = role
    os.environ["WORLD_SIZE"] = ranks
    os.environ["INIT_METHOD"] = "file://"
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    if role == "nccl":
        cuda.pretend(int(ranks))


def _suite():
    from torch.testing._internal.distributed import distributed_test

    return distributed_test


def _send_output_to(log: str) -> None:
    """Sends what tests print to a file: output is wanted when they fail."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)


def _cases(backend: str, role: str, seconds: int) -> type:
    """The class of the suite's tests on a backend in a role."""
    suite = _suite()
    judged.register(backend)
    if backend != role:
        judged.take_the_place_of(("gloo", role), backend)
    _limit(seconds)
    suite.BACKEND = judged.Judged(backend, role)
    suite.PROFILING_SUPPORTED_BACKENDS.append(backend)
    suite.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append(backend)
    if backend != "gloo":
        _let_ranges_be_of_one_thread(suite)

    class Cases(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            # A process which imports the suite for itself reads it here.
            suite.INIT_METHOD = os.environ["INIT_METHOD"]
            self._start_processes(multiprocessing.get_context("fork").Process)

        @classmethod
        def _run(cls, rank: int, *rest, **others) -> None:
            # Rank 0 has the standard input of the driver otherwise.
            sys.stdin = open(os.devnull)
            super()._run(rank, *rest, **others)

    return Cases


def _let_ranges_be_of_one_thread(suite: Any) -> None:
    """The suite wants ranges of the profiler to be asynchronous, as they are where another
    thread ends each call. Of ours names, numbers and shapes are what it wants."""
    original = suite.get_profiling_event

    def events(*args: Any, **kwargs: Any) -> list:
        found = original(*args, **kwargs)
        for event in found:
            event.is_async = True
        return found

    suite.get_profiling_event = events


def _limit(seconds: int) -> None:
    from torch.testing._internal import common_distributed as common

    common.TIMEOUT_DEFAULT = seconds
    for name, limit in common.TIMEOUT_OVERRIDE.items():
        common.TIMEOUT_OVERRIDE[name] = min(limit, seconds)


def _run(case: unittest.TestCase, name: str, log: str) -> dict:
    os.truncate(log, 0)
    began = time.monotonic()
    result = unittest.TestResult()
    case.run(result)
    _end_what_is_left()
    outcome, reason = _outcome(result, log)
    took = round(time.monotonic() - began, 2)
    return {"name": name, "outcome": outcome, "reason": reason, "seconds": took}


def _outcome(result: unittest.TestResult, log: str) -> tuple[str, str]:
    if result.skipped:
        return "skipped", result.skipped[0][1]
    bad = result.failures + result.errors
    if bad or result.unexpectedSuccesses:
        return "failed", (bad[0][1] if bad else "") + _text(log)
    return "passed", ""


def _text(log: str) -> str:
    with open(log, errors="replace") as file:
        return "\n--- output ---\n" + file.read()[-8000:]


def _end_what_is_left() -> None:
    """Ends ranks which did not heed the suite's SIGTERM, and reaps them all."""
    for process in multiprocessing.active_children():
        process.join(1)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()


def _write(results: TextIO, line: dict) -> None:
    results.write(json.dumps(line) + "\n")
    results.flush()


if __name__ == "__main__":
    main()
