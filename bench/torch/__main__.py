# SPDX-License-Identifier: BSD-3-Clause
"""The PyTorch backend beside gloo, by turns in one run, on this machine.

    python bench/torch [OPTIONS]

A row for each thing, tab-separated: name, ranks, bytes, then median and quartiles in
microseconds of gloo and of raddle, and how many times faster raddle is. Wants PyTorch, and
the package raddle: installed, or PYTHONPATH=python and a release build. The tree needs
nothing else, so it can be copied to another machine of the same kind with its build.

With --gates the exit status is 1 if a number is not what the project promises of it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_PARTS = ("overhead", "collectives", "new_group", "fsdp")
_SIZES = "8,1024,4096,65536,1048576,16777216"
_FACTOR_SMALL, _FACTOR_LARGE, _FACTOR_GROUP, _FACTOR_OUTSIDE = 8, 4, 20, 4
_CALL_MOST_US = 12


class Row:
    """What one thing took, in microseconds."""

    def __init__(self, line: dict):
        self.name, self.ranks, self.bytes = line["name"], line["ranks"], line["bytes"]
        self.gloo, self.raddle = (_quartiles(line["seconds"][b]) for b in ("gloo", "raddle"))
        # Of each turn, as both had the same machine then.
        self.factor = self.gloo[1] / self.raddle[1] if self.raddle[1] > 0 else float("inf")

    def __str__(self) -> str:
        numbers = (*_median_first(self.gloo), *_median_first(self.raddle))
        return "\t".join((self.name, str(self.ranks), str(self.bytes),
                          *(f"{number:.1f}" for number in numbers), f"{self.factor:.1f}"))

    def misses(self) -> str | None:
        """What is promised of it and does not hold."""
        if self.name == "python_per_call":
            least, value = None, self.raddle[1]
            return f"{value:.1f} us, more than {_CALL_MOST_US}" if value > _CALL_MOST_US else None
        if self.name.startswith("new_group"):
            least = _FACTOR_GROUP
        elif self.name == "fsdp_outside_compute":
            least = _FACTOR_OUTSIDE
        elif self.name.startswith("fsdp"):
            least = 1
        elif self.bytes <= 4096:
            least = _FACTOR_SMALL
        else:
            least = _FACTOR_LARGE if self.bytes >= 1 << 20 else 1
        return f"{self.factor:.1f} times, less than {least}" if self.factor < least else None


def _quartiles(seconds: list[float]) -> list[float]:
    if len(seconds) < 2:
        return [seconds[0] * 1e6] * 3
    return [1e6 * value for value in statistics.quantiles(seconds, n=4, method="inclusive")]


def _median_first(quartiles: list[float]) -> tuple[float, float, float]:
    low, median, high = quartiles
    return median, low, high


def _start(ranks: int, store: str, options: argparse.Namespace) -> list[subprocess.Popen]:
    command = [sys.executable, str(_HERE / "rank.py"), "--turns", str(options.turns), "--sizes",
               options.sizes, "--length", str(options.length), "--parts", options.parts]
    # gloo otherwise asks for the host's name, which may lead away from the host.
    surroundings = {**os.environ, "WORLD_SIZE": str(ranks), "BENCH_STORE": store,
                    "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo"),
                    "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    return [subprocess.Popen(command, env={**surroundings, "RANK": str(rank)},
                             stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL)
            for rank in range(ranks)]


def _rows(ranks: int, options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        jobs = _start(ranks, os.path.join(folder, "store"), options)
        try:
            for line in jobs[0].stdout:
                yield Row(json.loads(line))
            for rank, job in enumerate(jobs):
                if job.wait() != 0:
                    raise SystemExit(f"bench/torch: rank {rank} of {ranks} ended with "
                                     f"{job.returncode}")
        finally:
            for job in jobs:
                job.kill()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/torch", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--ranks", default="2,4", help="numbers of ranks: 2,4")
    add("--turns", type=int, default=9, help="how often each backend has its turn (9)")
    add("--sizes", default=_SIZES, help=f"bytes of collectives: {_SIZES}")
    add("--length", type=int, default=256, help="tokens on a rank in a step of FSDP2 (256)")
    add("--parts", default=",".join(_PARTS), help=",".join(_PARTS))
    add("--gates", action="store_true", help="say what is not as promised")
    return parser.parse_args()


def main() -> int:
    options = _options()
    missed = []
    print("name\tranks\tbytes\tgloo_us\tq1\tq3\traddle_us\tq1\tq3\ttimes", flush=True)
    for ranks in map(int, options.ranks.split(",")):
        for row in _rows(ranks, options):
            print(row, flush=True)
            missed += [f"{row.name}, {row.ranks} ranks, {row.bytes} bytes: {why}"
                       for why in [row.misses()] if why]
    if options.gates:
        print("\n".join(f"not as promised: {line}" for line in missed) or "all as promised")
    return 1 if options.gates and missed else 0


if __name__ == "__main__":
    sys.exit(main())
