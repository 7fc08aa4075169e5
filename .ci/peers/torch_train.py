"""Whole training steps of a decoder in PyTorch. Arguments: the shape as JSON, and "fp32" or "bf16" (autocast, float32 weights)."""

import contextlib
import inspect
import json
import sys
import time

import torch
import torch.nn.functional as F

from torch_model import Decoder, answer

shape, precision = json.loads(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
model = Decoder(shape)
fused = "fused" in inspect.signature(torch.optim.AdamW).parameters and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 4)
options = {"fused": True} if fused else {"foreach": True}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, **options)
ids = torch.randint(0, shape["vocab"], (shape["sequences"], shape["tokens"]))


def step(threads):
    start = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext():
        logits = model(ids)
    loss = F.cross_entropy(logits[:, :-1].float().reshape(-1, shape["vocab"]), ids[:, 1:].reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    loss = loss.item()
    return {"seconds": time.perf_counter() - start, "loss": loss}


answer(step)
