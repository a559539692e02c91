# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark measures every thing that it names. How fast anything is, no test says."""

import subprocess
import sys

from launching import ROOT, environment


def test_the_benchmark_has_a_row_for_each_thing():
    done = subprocess.run([sys.executable, str(ROOT / "bench" / "torch"), "--ranks", "2", "--turns",
                           "2", "--sizes", "8", "--length", "16"],
                          env=environment(), text=True, capture_output=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    head, *rows = (line.split("\t") for line in done.stdout.splitlines())
    assert [row[0] for row in rows] == [
        "python_per_call", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
        "barrier", "new_group", "fsdp_step", "fsdp_gradients", "fsdp_outside_compute"]
    for row in rows:
        assert len(row) == len(head)
        assert row[0] == "fsdp_outside_compute" or float(row[3]) > 0 < float(row[6])
