# SPDX-License-Identifier: BSD-3-Clause
"""Small models and training loops for tests. All weights come from fixed seeds."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

WIDTH = 12


class Block(nn.Module):
    """A width of 17 does not divide."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, hidden)
        self.down = nn.Linear(hidden, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


class Stack(nn.Module):
    """A few blocks, and a head which is not one of them."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(hidden) for _ in range(3))
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def stack(hidden: int = 17) -> Stack:
    torch.manual_seed(42)
    return Stack(hidden)


class Gathered(torch.autograd.Function):
    """Sequences of all ranks joined; gradients are added and shared out again."""

    @staticmethod
    def forward(ctx: Any, local: torch.Tensor) -> torch.Tensor:
        full = local.new_empty(dist.get_world_size() * local.shape[0], *local.shape[1:])
        dist.all_gather_into_tensor(full, local.contiguous())
        return full

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        local = grad.new_empty(grad.shape[0] // dist.get_world_size(), *grad.shape[1:])
        dist.reduce_scatter_tensor(local, grad.contiguous())
        return local


class Attention(nn.Module):
    """Causal self-attention of 2 heads on [batch, rows, 8]: rows of this rank, which
    follow those of the ranks before it, or the whole sequence."""

    def __init__(self, gathers: bool = False) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24, bias=False)
        self.out = nn.Linear(8, 8, bias=False)
        self._gathers = gathers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.transpose(0, 1) for part in self.qkv(x).chunk(3, dim=-1))
        first = 0
        if self._gathers:
            first = len(q) * dist.get_rank()
            k, v = Gathered.apply(k), Gathered.apply(v)
        q, k, v = (t.reshape(len(t), -1, 2, 4).permute(1, 2, 0, 3) for t in (q, k, v))
        seen = torch.arange(first, first + q.shape[2])[:, None] >= torch.arange(k.shape[2])
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return x + self.out(mixed.transpose(1, 2).flatten(2))


def batch(step: int, rank: int, rows: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(rows, WIDTH, generator=generator)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: Iterable[int] = range(4),
    rank: int | None = None,
) -> list[float]:
    """Losses of steps, each rank on its own rows (or on those of rank)."""
    who = dist.get_rank() if rank is None else rank
    return descend(model, optimizer, (batch(step, who) for step in steps))


def descend(
    model: Callable, optimizer: torch.optim.Optimizer, inputs: Iterable[torch.Tensor]
) -> list[float]:
    losses = []
    for x in inputs:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """A plain copy, gathered if it is sharded."""
    from torch.distributed.tensor import DTensor

    full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return full.detach().clone()


def weights(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: whole(p) for name, p in model.state_dict().items()}
