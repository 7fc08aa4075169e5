"""Sampling in the manner of transformers' generate: one prompt a row, a growing key-value cache, softmax and multinomial.

Arguments: the shape as JSON with batch, prompt and new, and "fp32" or "bf16" (weights and activations).
"""

import json
import sys
import time

import torch

from torch_model import Decoder, answer

shape, precision = json.loads(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
model = Decoder(shape).eval().to(torch.bfloat16 if precision == "bf16" else torch.float32)
prompts = torch.randint(0, shape["vocab"], (shape["batch"], shape["prompt"]))


@torch.no_grad()
def generate(threads):
    start = time.perf_counter()
    past, ids, begin = [[] for _ in model.layers], prompts, 0
    for i in range(shape["new"]):
        logits = model(ids, begin, past, last=True)[:, -1].float()
        begin += ids.shape[1]
        ids = torch.multinomial(logits.softmax(-1), 1)
        if i == 0:
            first = time.perf_counter()
    end = time.perf_counter()
    return {"seconds": end - start, "rate": shape["batch"] * (shape["new"] - 1) / (end - first)}


answer(generate)
