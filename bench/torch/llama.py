# SPDX-License-Identifier: BSD-3-Clause
"""A small Llama: what an FSDP2 step has to compute."""

import torch
from torch import nn

DIM, LAYERS, HIDDEN, VOCAB, HEADS = 256, 6, 768, 2048, 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.feed_norm = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.out = nn.Linear(DIM, DIM, bias=False)
        self.gate = nn.Linear(DIM, HIDDEN, bias=False)
        self.up = nn.Linear(DIM, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2)
                   for part in self.qkv(self.attention_norm(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(turn(q, turns), turn(k, turns), v,
                                                       is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, DIM))
        y = self.feed_norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def turn(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Each pair of numbers by the angle of its position."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2)


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        width = DIM // HEADS
        speeds = 10000.0 ** (-torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(tokens.size(1)), speeds)
        turns = torch.polar(torch.ones_like(angles), angles)
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x, turns)
        return self.head(self.norm(x).flatten(0, 1))
