"""A dense decoder as PyTorch users write it: Qwen3's layers (QK norm, grouped queries, SwiGLU, tied head), with and without a cache."""

import json
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def attend(q, k, v):
    """Causal attention of the last positions; SDPA where this PyTorch has it, the textbook form where not."""
    if k.shape[1] != q.shape[1]:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    causal = q.shape[2] > 1
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores + torch.full(scores.shape[-2:], -math.inf).triu(1)
    return scores.softmax(-1) @ v


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        d, q, kv, self.dim = s["hidden"], s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"], s["head_dim"]
        self.q, self.k, self.v = nn.Linear(d, q, bias=False), nn.Linear(d, kv, bias=False), nn.Linear(d, kv, bias=False)
        self.o = nn.Linear(q, d, bias=False)
        self.gate, self.up = nn.Linear(d, s["ff"], bias=False), nn.Linear(d, s["ff"], bias=False)
        self.down = nn.Linear(s["ff"], d, bias=False)
        self.norm1, self.norm2, self.qnorm, self.knorm = RMSNorm(d), RMSNorm(d), RMSNorm(self.dim), RMSNorm(self.dim)

    def forward(self, x, cos, sin, past):
        n, t, _ = x.shape
        y = self.norm1(x)
        heads = lambda z: z.view(n, t, -1, self.dim)
        q = rotate(self.qnorm(heads(self.q(y))).transpose(1, 2), cos, sin)
        k = rotate(self.knorm(heads(self.k(y))).transpose(1, 2), cos, sin)
        v = heads(self.v(y)).transpose(1, 2)
        if past is not None:
            if past:
                k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
            past[:] = k, v
        x = x + self.o(attend(q, k, v).transpose(1, 2).reshape(n, t, -1))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed = nn.Embedding(s["vocab"], s["hidden"])
        self.layers = nn.ModuleList(Layer(s) for _ in range(s["layers"]))
        self.norm, self.dim = RMSNorm(s["hidden"]), s["head_dim"]
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)
        angles = torch.arange(s["positions"])[:, None] * 1e4 ** (-torch.arange(0, self.dim, 2) / self.dim)
        self.register_buffer("cos", torch.cat((angles.cos(), angles.cos()), -1))
        self.register_buffer("sin", torch.cat((angles.sin(), angles.sin()), -1))

    def forward(self, ids, start=0, past=None, last=False):
        x = self.embed(ids)
        cos, sin = (z[start : start + ids.shape[1]].to(x.dtype) for z in (self.cos, self.sin))
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, past[i] if past else None)
        if last:
            x = x[:, -1:]
        return F.linear(self.norm(x), self.embed.weight)


def answer(work):
    """Answers one line of JSON for each line "threads" of the standard input with what work(threads) returns."""
    print(json.dumps({"version": torch.__version__}), flush=True)
    for line in sys.stdin:
        threads = int(line)
        torch.set_num_threads(threads)
        reply = work(threads)
        with open("/proc/self/status") as f:
            reply["peak_rss"] = next(1024 * int(l.split()[1]) for l in f if l.startswith("VmHWM"))
        print(json.dumps(reply), flush=True)
