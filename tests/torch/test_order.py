# SPDX-License-Identifier: BSD-3-Clause
"""Independent users of the same ranks, and streams which race on one communicator."""

import threading
from typing import Any

import pytest
import torch
import torch.distributed as dist
from models import Attention, descend
from torch import nn
from torch.distributed.fsdp import fully_shard


def beside_training(rounds: int) -> tuple[int, int]:
    """A thread with a group of its own, which starts and ends rounds when it likes."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own = dist.new_group(list(range(size)))
    ones = sum(10**r for r in range(size))
    wrong: list[Any] = []

    def saver() -> None:
        torch.set_num_threads(1)
        for i in range(rounds):
            tensor = torch.tensor([2 * 10**rank, i])
            dist.all_reduce(tensor, group=own)
            state = [torch.zeros(2) for _ in range(size)]
            dist.all_gather(state, torch.tensor([7.0, rank]), group=own)
            if tensor.tolist() != [2 * ones, i * size] or [int(s[1]) for s in state] != list(
                range(size)
            ):
                wrong.append((i, tensor, state))

    thread = threading.Thread(target=saver)
    thread.start()
    for i in range(rounds):
        # The same operation, size and dtype as the thread's.
        tensor = torch.tensor([10**rank, i])
        work = dist.all_reduce(tensor, async_op=i % 2 == 0)
        if work is not None:
            work.wait()
        if tensor.tolist() != [ones, i * size]:
            wrong.append((i, tensor))
    thread.join()
    assert not wrong, wrong[:3]
    dist.destroy_process_group(own)
    return rounds, len(wrong)


@pytest.mark.parametrize("size", [2, 4])
def test_a_group_of_a_thread_never_meets_trainings_calls(pools, size):
    assert pools.run(size, beside_training, 1000, seconds=120) == [(1000, 0)] * size


class Racers(nn.Module):
    """Blocks whose attention gathers keys and values itself, on the default group."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Attention(gathers=True) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def race(runs: int) -> list[list[float]]:
    """FSDP2 gathers and reduces, beside the program, on the default group; autograd's
    thread makes blocking calls between them."""
    rank = dist.get_rank()
    losses = []
    for run in range(runs):
        torch.manual_seed(run)
        model: Any = Racers()
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(100 * run + rank)
        inputs = [torch.randn(2, 4, 8, generator=generator) for _ in range(3)]
        losses.append(descend(model, optimizer, inputs))
    return losses


@pytest.mark.parametrize("runs", [5, pytest.param(28, marks=pytest.mark.soak)])
def test_fsdp_and_context_parallel_race_on_the_default_group(pools, runs):
    ours, theirs = pools.both(4, race, runs, seconds=240)
    for rank in range(4):
        assert len(ours[rank]) == runs
        for mine, gloos in zip(ours[rank], theirs[rank]):
            assert mine == pytest.approx(gloos, abs=1e-6)


def on_the_default_group() -> bool:
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return mesh.get_group().group_name == dist.group.WORLD.group_name


def test_a_mesh_axis_over_all_ranks_is_the_default_group(pools):
    """So the race above is one."""
    assert pools.run(4, on_the_default_group) == [True] * 4
