# SPDX-License-Identifier: BSD-3-Clause
"""What tests of the PyTorch backend share: pools of ranks."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import raddle  # noqa: F401
except ImportError:
    sys.path.insert(0, str(Path(__file__).parents[2] / "python"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: a long form, which ./dev soak runs")


@pytest.fixture(scope="session")
def pools() -> Iterator:
    import torch
    from pool import Pools

    torch.set_num_threads(1)
    pools = Pools()
    yield pools
    pools.close()
