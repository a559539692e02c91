# SPDX-License-Identifier: BSD-3-Clause
"""Ranks for tests: forked processes that meet in a file, each of which runs a function.

PyTorch is imported once, here; a forked rank starts in a few milliseconds. What a rank
raises fails the test with its traceback, and so does one that ends or hangs.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pytest  # noqa: E402
import torch.distributed as dist  # noqa: E402

import raddle.torch  # noqa: E402, F401

LIMIT_S = 60


def _rank(body: Callable, rank: int, size: int, file: str, destroys: bool, answers: Any,
          arguments: tuple) -> None:
    try:
        dist.init_process_group("raddle", init_method=f"file://{file}", rank=rank,
                                world_size=size)
        answer = body(rank, size, *arguments)
        if destroys:
            dist.destroy_process_group()
        answers.send((None, answer))
    except BaseException:  # shown by the test
        answers.send((traceback.format_exc(), None))
    answers.close()


def run_ranks(body: Callable, size: int, *arguments: Any, destroys: bool = True,
              dies: tuple[int, ...] = ()) -> list[Any]:
    """What body(rank, size, *arguments) returns on each rank. dies: ranks that end without
    an answer, as they should."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ends = [fork.Pipe(False) for _ in range(size)]
        ranks = [fork.Process(target=_rank, args=(body, rank, size, f"{folder}/store", destroys,
                                                  ends[rank][1], arguments))
                 for rank in range(size)]
        for process in ranks:
            process.start()
        for _, writer in ends:
            writer.close()
        try:
            return [_answer(ends[rank][0], rank, rank in dies) for rank in range(size)]
        finally:
            for process in ranks:
                process.join(LIMIT_S if sys.exc_info()[0] is None else 1)
                if process.is_alive():
                    process.kill()
                    process.join()


def _answer(reader: Any, rank: int, dies: bool) -> Any:
    if not reader.poll(LIMIT_S):
        pytest.fail(f"rank {rank} has not ended after {LIMIT_S} s")
    try:
        failure, answer = reader.recv()
    except EOFError:
        if dies:
            return None
        pytest.fail(f"rank {rank} has ended without an answer")
    if failure is not None:
        pytest.fail(f"rank {rank}:\n{failure}")
    return answer


@pytest.fixture(name="run_ranks")
def _run_ranks() -> Callable:
    return run_ranks
