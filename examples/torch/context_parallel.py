# SPDX-License-Identifier: BSD-3-Clause
"""Context parallel over all ranks: the axis of the sequence is the default group.

    raddle run -n 4 -- python examples/torch/context_parallel.py
    torchrun --nproc-per-node 4 examples/torch/context_parallel.py

Each rank has a piece of the sequence. Attention gathers the keys and values of all pieces
on the very group on which FSDP2 gathers parameters and reduces gradients. Raddle runs the
calls of one group in the order in which they were issued, so neither disturbs the other.
It ends with status 0 if the losses are those of one rank with the whole sequence.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

import raddle.torch  # noqa: F401 (registers the backend)

STEPS = 6
BATCH, PIECE, HEADS, WIDTH, WORDS = 2, 16, 4, 32, 50


def gather_sequence(x: torch.Tensor, mesh: dist.DeviceMesh) -> torch.Tensor:
    """All ranks' pieces (batch, heads, sequence, width); the gradient goes back in pieces,
    each the sum of what all ranks have for it."""
    piece = DTensor.from_local(x, mesh, [Shard(2)], run_check=False)
    return piece.redistribute(mesh, [Replicate()]).to_local(grad_placements=[Partial()])


class Attention(nn.Module):
    def __init__(self, mesh: dist.DeviceMesh | None):
        super().__init__()
        self.mesh = mesh  # None: this rank has the whole sequence
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2)
                   for part in self.qkv(self.norm(x)).chunk(3, -1))
        first = 0
        if self.mesh is not None:
            first = self.mesh.get_local_rank() * length
            k, v = gather_sequence(k, self.mesh), gather_sequence(v, self.mesh)
        rows = torch.arange(first, first + length).unsqueeze(1)
        seen = torch.arange(k.size(2)) <= rows
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))


def make_model(mesh: dist.DeviceMesh | None) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), Attention(mesh), Attention(mesh),
                         nn.Flatten(0, 1), nn.Linear(WIDTH, WORDS))


def train(model: nn.Module, words: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words), following.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group(os.environ.get("BACKEND", "raddle"))
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("cp",))

    torch.manual_seed(2)
    text = torch.randint(0, WORDS, (BATCH, PIECE * size + 1))
    words, following = text[:, :-1], text[:, 1:]
    mine = slice(rank * PIECE, (rank + 1) * PIECE)

    model = make_model(mesh)
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    losses = train(model, words[:, mine], following[:, mine])
    dist.all_reduce(losses, op=dist.ReduceOp.AVG)
    alone = train(make_model(None), words, following)
    torch.testing.assert_close(losses, alone, rtol=1e-4, atol=1e-4)
    if not losses[-1] < losses[0]:
        raise AssertionError(f"the loss went from {losses[0]} to {losses[-1]}")
    if rank == 0:
        print(f"{size} pieces of {PIECE}: the loss fell from {losses[0]:.4f} to {losses[-1]:.4f}, "
              "as on one rank")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
