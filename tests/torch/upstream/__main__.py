# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own process-group suite on raddle and on gloo, side by side.

    python tests/torch/upstream [OPTIONS] [FILE ...]

The suite comes with PyTorch's wheel. Each of its tests runs on both backends,
in processes of its own, first as it runs for gloo; tests which are left out
there run as for mpi, and those which are left out there too as for nccl, with
processors in the place of GPUs. What passes on gloo has to pass on raddle:
tests for which that is not so are listed, and if differences.txt does not name
them the exit status is 1.

A FILE is one of PyTorch's test files, below its source tree, which the
variable RADDLE_PYTORCH_SOURCE names; it runs on raddle, in the place of gloo.
"""

import argparse
import sys

import files
import report
import runs


def main() -> int:
    options = _options()
    if options.files:
        return files.run(options.files, options.keyword)
    names = _chosen(options)
    bad = 0
    for ranks in options.ranks:
        outcomes = runs.compare(names, ranks, options)
        bad += report.tell(outcomes, ranks, options.verbose)
        if options.results:
            report.note(outcomes, ranks, options.results)
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="upstream", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="PyTorch's test files to run instead")
    add("-n", dest="ranks", type=_numbers, default=[2, 3, 4], help="numbers of ranks: 2,3,4")
    add("-k", dest="keyword", default="", help="only tests whose name this regex finds")
    add("-b", dest="backends", type=_words, default=["gloo", "raddle"], help="gloo,raddle")
    add("-r", dest="roles", type=_words, default=list(runs.ROLES), help="gloo,mpi,nccl")
    add("-s", dest="shard", default="1/1", help="part I of N of the tests: I/N")
    add("-t", dest="seconds", type=int, default=60, help="limit of one test (60)")
    add("--results", metavar="FILE", help="a line of it for each test, as ./dev check has them")
    add("-v", dest="verbose", action="store_true", help="every test, and what it said")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _words(text: str) -> list[str]:
    return text.split(",")


def _chosen(options: argparse.Namespace) -> list[str]:
    import re

    part, parts = (int(number) for number in options.shard.split("/"))
    if not 1 <= part <= parts:
        raise SystemExit(f"upstream: shard {part} of {parts}: the first is 1")
    found = [name for name in runs.names() if re.search(options.keyword, name)]
    return found[part - 1 :: parts]


if __name__ == "__main__":
    sys.exit(main())
