# SPDX-License-Identifier: BSD-3-Clause
"""Starting programs as ranks, by raddle run and by torchrun, for tests."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RADDLE = Path(os.environ.get("RADDLE_BUILD", ROOT / "build" / "release")) / "cli" / "raddle"

# What another job may have left in the environment of the tests.
_FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
            "RADDLE_FD")


def environment(**more: str) -> dict[str, str]:
    """Of a program that finds the package of this tree, on one thread a rank."""
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    paths = [str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", **more}


def raddle_run(ranks: int, *program: str) -> list[str]:
    return [str(RADDLE), "run", "-n", str(ranks), "--no-prefix", "--", sys.executable, *program]


def torchrun(ranks: int, *program: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
            str(ranks), *program]


def finish(command: list[str], seconds: int = 120, **more: str) -> str:
    """What it printed; AssertionError, with all of that, if its status is not 0."""
    done = subprocess.run(command, env=environment(**more), text=True, timeout=seconds,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}"
    return done.stdout


def finish_all(commands: list[list[str]], seconds: int = 240) -> list[str]:
    """The same, all at once; what each printed, and its status."""
    with tempfile.TemporaryDirectory() as folder:
        files = [open(Path(folder) / str(i), "w+") for i in range(len(commands))]
        jobs = [subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL,
                                 stdout=file, stderr=subprocess.STDOUT)
                for command, file in zip(commands, files)]
        texts = []
        try:
            for job, file in zip(jobs, files):
                status = job.wait(seconds)
                file.seek(0)
                texts.append(f"{file.read().strip()}\nstatus {status}")
        finally:
            for job in jobs:
                job.kill()
            for file in files:
                file.close()
        return texts
