# SPDX-License-Identifier: BSD-3-Clause
"""Data parallel training: each rank has the whole model and a share of the rows.

    raddle run -n 4 -- python examples/torch/ddp.py
    torchrun --nproc-per-node 4 examples/torch/ddp.py

Two lines make a program of gloo's one of Raddle's: the import, and the backend's name.
It ends with status 0 if the loss fell, and if all ranks have the same parameters.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import raddle.torch  # noqa: F401 (registers the backend)

STEPS = 30
ROWS = 64


def make_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))


def train(model: nn.Module, inputs: torch.Tensor, wanted: torch.Tensor) -> list[float]:
    """The loss over all ranks' rows, before each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()  # DDP averages the gradients meanwhile
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total, op=dist.ReduceOp.AVG)
        losses.append(total.item())
    return losses


def check_equal_on_all_ranks(model: nn.Module) -> None:
    mine = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    everyones = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, mine)
    for rank, theirs in enumerate(everyones):
        if not torch.equal(mine, theirs):
            raise AssertionError(f"rank {rank} has other parameters than {dist.get_rank()}")


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group(os.environ.get("BACKEND", "raddle"))
    rank, size = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(2)
    inputs = torch.randn(ROWS * size, 16)
    wanted = inputs.sum(1, keepdim=True).sin()
    mine = slice(rank * ROWS, (rank + 1) * ROWS)

    model = DistributedDataParallel(make_model())
    losses = train(model, inputs[mine], wanted[mine])
    check_equal_on_all_ranks(model)
    if not losses[-1] < losses[0] * 0.9:
        raise AssertionError(f"the loss went from {losses[0]} to {losses[-1]}")
    if rank == 0:
        print(f"{size} ranks: the loss fell from {losses[0]:.4f} to {losses[-1]:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
