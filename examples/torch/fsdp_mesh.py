# SPDX-License-Identifier: BSD-3-Clause
"""FSDP2 on a mesh of two axes: parameters in shards along one, replicas along the other.

    raddle run -n 4 -- python examples/torch/fsdp_mesh.py
    torchrun --nproc-per-node 4 examples/torch/fsdp_mesh.py

The mesh makes a group for each row and each column. With Raddle groups over the same
ranks share one communicator, and a group takes 1,024 bytes on each rank. It ends with
status 0 if the losses are those of a training without any sharding.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import raddle.torch

STEPS = 10
ROWS = 8


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def make_model() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(*(Block(32) for _ in range(3)), nn.Linear(32, 1))


def shard(model: nn.Sequential, mesh: dist.DeviceMesh) -> nn.Sequential:
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(model: nn.Module, inputs: torch.Tensor, wanted: torch.Tensor) -> list[torch.Tensor]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group(os.environ.get("BACKEND", "raddle"))
    rank, size = dist.get_rank(), dist.get_world_size()
    replicas = 2 if size % 2 == 0 else 1
    mesh = init_device_mesh("cpu", (replicas, size // replicas),
                            mesh_dim_names=("replicate", "shard"))

    torch.manual_seed(2)
    inputs = torch.randn(ROWS * size, 32)
    wanted = inputs.mean(1, keepdim=True).cos()
    mine = slice(rank * ROWS, (rank + 1) * ROWS)

    losses = torch.stack(train(shard(make_model(), mesh), inputs[mine], wanted[mine]))
    dist.all_reduce(losses, op=dist.ReduceOp.AVG)
    alone = torch.stack(train(make_model(), inputs, wanted))
    torch.testing.assert_close(losses, alone, rtol=1e-4, atol=1e-5)
    if rank == 0:
        print(f"{replicas} x {size // replicas} ranks: the loss fell from {losses[0]:.4f} to "
              f"{losses[-1]:.4f}, as without sharding")
        if dist.get_backend() == "raddle":
            account = raddle.torch.account()
            print(f"groups opened: {account['groups_opened']}, communicators: "
                  f"{account['communicators']}, /dev/shm: {account['dev_shm_peak_bytes']} bytes")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
