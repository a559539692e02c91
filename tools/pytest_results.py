# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest's for ./dev check: each test becomes a line of the file
RADDLE_RESULTS (status, arm, name, why), and what a failed one said goes to the file
RADDLE_REPORT.
"""

import os

import pytest


def _line(status: str, name: str, why: str = "") -> None:
    why = " ".join(why.split())[:300]
    with open(os.environ["RADDLE_RESULTS"], "a") as file:
        file.write("\t".join((status, os.environ["RADDLE_ARM"], name, why)) + "\n")


def _show(name: str, text: str) -> None:
    with open(os.environ["RADDLE_REPORT"], "a") as file:
        file.write(f"--- {name}\n{text}\n")


def _name(nodeid: str) -> str:
    """tests/torch/test_x.py::test_that[4] as torch/x.that[4]"""
    path, _, test = nodeid.partition("::")
    path = path.removeprefix("tests/").removesuffix(".py").replace("/test_", "/")
    return f"{path}.{test.removeprefix('test_')}" if test else path


def _why_skipped(report: pytest.TestReport | pytest.CollectReport) -> str:
    where = report.longrepr
    text = where[2] if isinstance(where, tuple) else str(where)
    return text.removeprefix("Skipped: ")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: long; ./dev soak runs it")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test is set up, called and torn down, and each of them may be what fails."""
    name = _name(report.nodeid)
    if report.failed:
        _line("failed", name, "" if report.when == "call" else f"in its {report.when}")
        _show(name, report.longreprtext)
    elif report.skipped:
        _line("skipped", name, _why_skipped(report))
    elif report.when == "call":
        _line("passed", name)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Files that cannot be read, or are left out as a whole."""
    name = _name(report.nodeid)
    if report.failed:
        _line("failed", name, "cannot be collected")
        _show(name, report.longreprtext)
    elif report.skipped:
        _line("skipped", name, _why_skipped(report))
