# SPDX-License-Identifier: BSD-3-Clause
"""Runs test files of a PyTorch source tree on raddle, in the place of gloo."""

import os
import subprocess
import sys
from pathlib import Path

SOURCE = "RADDLE_PYTORCH_SOURCE"


def run(files: list[str], keyword: str) -> int:
    """Runs files one after another; 1 if one failed. Prints what they print.

    Their processes import site/sitecustomize.py first, spawned ones too.
    """
    source = os.environ.get(SOURCE)
    if source is None:
        raise SystemExit(f"upstream: {SOURCE} has to name a PyTorch source tree")
    statuses = [_run_one(Path(source) / file, keyword) for file in files]
    for file, status in zip(files, statuses):
        print(f"  {file}: {'passed' if status == 0 else f'failed, status {status}'}")
    return 1 if any(statuses) else 0


def _run_one(file: Path, keyword: str) -> int:
    if not file.exists():
        raise SystemExit(f"upstream: there is no {file}")
    here = Path(__file__).parent
    path = [str(here / "site"), str(here), str(file.parent)]
    path += [os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path),
        "RADDLE_JUDGED": "raddle",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(file), "-v"]
    command += ["-k", keyword] if keyword else []
    return subprocess.run(command, env=environment, cwd=file.parent).returncode
