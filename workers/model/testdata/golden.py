"""Writes the goldens of this folder with PyTorch and Hugging Face transformers (made with torch 2.15.0, transformers 5.24.0).

    python golden.py        # needs torch, transformers, safetensors

For a small model of each family it saves the model folder as transformers does and golden.safetensors beside it:

    ids, lengths, coef      packed sequences and a coefficient for each token
    logp, entropy, logits   of each token, and the logits after each sequence
    grad.<name>             the gradient of sum(coef * logp)
                            all of the above computed in float64 (rotary angles in float32, as the models are defined)
    fp32, bf16, autocast    error of PyTorch's own float32, bfloat16 and autocast runs: for logp, logits and each grad, in the order of
                            the names in the file's metadata, the norm of the difference over the norm of the float64 result
    adamw.{w,m,v}.<name>    three steps of torch.optim.AdamW on grad, 0.25 grad and -0.5 grad, for some tensors
    train.loss, train.norm  mean negative log-likelihood before each of three steps and after them, and the gradient's norm: float32,
                            AdamW, clipped, on a cosine schedule with warm-up (see train() for the numbers)

llama-long is a model with a sequence of 2,000 tokens: golden.safetensors holds its ids, some positions and the float64 logits that follow them.

rope.json holds the rotary frequencies and the attention factor that transformers computes for configurations of published sizes, and the
cosines and sines of the last position of those without scaling.

    python golden.py --rope # writes rope.json and llama-long only
"""

import json
import math
import pathlib
import sys
import types

import torch
from safetensors.torch import save_file
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

HERE = pathlib.Path(__file__).parent
LENGTHS = [5, 70, 1, 33]
SIZES = dict(vocab_size=48, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256, initializer_range=0.2, eos_token_id=[3, 4], attn_implementation="eager")
ADAMW = ["model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight", "model.layers.1.input_layernorm.weight",
         "model.layers.1.self_attn.k_proj.bias"]

softmax = torch.nn.functional.softmax
torch.nn.functional.softmax = lambda x, dim=None, dtype=None: softmax(x, dim=dim, dtype=x.dtype if x.dtype == torch.float64 else dtype)


def wide(model):
    """A float64 copy whose norms do not go through float32."""
    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))
    model = clone(model).double()
    for m in model.modules():
        if type(m).__name__.endswith("RMSNorm"):
            m.forward = types.MethodType(forward, m)
    return model


def clone(model):
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    if model.config.tie_word_embeddings:
        copy.tie_weights()
    return copy


def half(model):
    """A bfloat16 copy as from_pretrained makes it: with rotary frequencies in float32."""
    copy = clone(model).bfloat16()
    copy.model.rotary_emb.inv_freq = model.model.rotary_emb.inv_freq
    return copy


def score(model, x):
    """Log-probability and entropy of every token, and the logits after the last."""
    y = model(input_ids=x[None]).logits[0]
    lp = torch.log_softmax(y if y.dtype == torch.float64 else y.float(), -1)
    first = torch.zeros(1, dtype=lp.dtype)
    token = torch.cat([first, lp[:-1].gather(1, x[1:, None])[:, 0]])
    return token, torch.cat([first, -(lp.exp() * lp).sum(-1)[:-1]]), y[-1]


def run(model, ids, coef, autocast=False):
    model.zero_grad()
    out = {"logp": [], "entropy": [], "logits": []}
    for x, c in zip(ids, coef):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            token, entropy, last = score(model, x)
        (c.to(token.dtype) * token).sum().backward()
        for name, v in zip(out, (token, entropy, last)):
            out[name].append(v.detach().double())
    out = {"logp": torch.cat(out["logp"]), "entropy": torch.cat(out["entropy"]), "logits": torch.stack(out["logits"])}
    return out | {"grad." + name: p.grad.clone().double() for name, p in model.named_parameters()}


def errors(got, want, names):
    return torch.tensor([((got[n] - want[n]).norm() / want[n].norm()).item() for n in names])


def adamw(model, grads):
    chosen = {name: p for name, p in clone(model).named_parameters() if name in ADAMW}
    optimizer = torch.optim.AdamW(chosen.values(), lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    for step in range(3):
        for name, p in chosen.items():
            p.grad = grads["grad." + name].float() * (1 - 0.75 * step)
        optimizer.step()
    out = {}
    for name, p in chosen.items():
        state = optimizer.state[p]
        out |= {"adamw.w." + name: p.detach(), "adamw.m." + name: state["exp_avg"], "adamw.v." + name: state["exp_avg_sq"]}
    return out


def train(model, ids, rate=5e-3, warmup=1, total=4, clip=0.5):
    model = clone(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    tokens = sum(len(x) - 1 for x in ids)
    losses, norms = [], []
    for step in range(4):
        optimizer.zero_grad()
        loss = -sum(score(model, x)[0].sum() for x in ids) / tokens
        losses.append(loss.item())
        if step == 3:
            break
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        for group in optimizer.param_groups:
            group["lr"] = rate if step < warmup else rate * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
        optimizer.step()
    return {"train.loss": torch.tensor(losses), "train.norm": torch.tensor(norms)}


def old_shape(path):
    """config.json as transformers 4 wrote it."""
    c = json.loads((path / "config.json").read_text())
    rope = c.pop("rope_parameters")
    c["rope_theta"] = rope.pop("rope_theta")
    c["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    c["torch_dtype"] = c.pop("dtype")
    (path / "config.json").write_text(json.dumps(c, indent=2) + "\n")


def write(folder, seed, make, config, dtype=torch.float32, shard="1GB", old=False, **options):
    torch.manual_seed(seed)
    model = make(config(**SIZES, **options)).float()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:  # norms away from 1 and biases from 0
                p.add_(torch.randn_like(p) * 0.2)
            p.copy_(p.to(dtype))
    ids = [torch.randint(0, SIZES["vocab_size"], (n,)) for n in LENGTHS]
    coef = [torch.randn(n) for n in LENGTHS]
    want = run(wide(model), ids, coef)
    names = [n for n in want if n != "entropy"]
    out = {"ids": torch.cat(ids).float(), "lengths": torch.tensor(LENGTHS).float(), "coef": torch.cat(coef)} | want
    out |= {"fp32": errors(run(clone(model), ids, coef), want, names), "bf16": errors(run(half(model), ids, coef), want, names),
            "autocast": errors(run(clone(model), ids, coef, autocast=True), want, names)}
    out |= adamw(model, want) | train(model, ids)
    assert out["fp32"].max() < 3e-6, out["fp32"]
    path = HERE / folder
    model.to(dtype).save_pretrained(path, max_shard_size=shard)
    (path / "generation_config.json").unlink(missing_ok=True)
    if old:
        old_shape(path)
    save_file({k: v.float().contiguous() for k, v in out.items()}, path / "golden.safetensors", {"errors": " ".join(names)})


torch.set_num_threads(1)
QWEN3, QWEN2, LLAMA = (Qwen3ForCausalLM, Qwen3Config), (Qwen2ForCausalLM, Qwen2Config), (LlamaForCausalLM, LlamaConfig)


def rope(kind, theta=10000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def every():
    write("qwen3", 1, *QWEN3, head_dim=8, tie_word_embeddings=True, rope_parameters=rope("default"))
    write("qwen3-untied", 2, *QWEN3, head_dim=8, tie_word_embeddings=False, rope_parameters=rope("default", 1e6), old=True)
    write("qwen2", 3, *QWEN2, dtype=torch.bfloat16, shard="12KB", tie_word_embeddings=True,
          rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=64))
    write("llama", 4, *LLAMA, dtype=torch.float16, tie_word_embeddings=False, old=True,
          rope_parameters=rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32))
    write("llama-biased", 5, *LLAMA, dtype=torch.bfloat16, head_dim=8, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
          rope_parameters=rope("linear", factor=2.0))


def long():
    torch.manual_seed(6)
    sizes = dict(SIZES, num_attention_heads=2, num_key_value_heads=1, head_dim=16, max_position_embeddings=2048)
    model = LlamaForCausalLM(LlamaConfig(**sizes, tie_word_embeddings=True, rope_parameters=rope(
        "llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=512))).float()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.half())
    ids = torch.randint(0, SIZES["vocab_size"], (2000,))
    positions = [0, 63, 64, 700, 1500, 1999]

    def logits(model):
        with torch.no_grad():
            return model(input_ids=ids[None]).logits[0, positions].double()
    want, got = logits(wide(model)), logits(clone(model))
    print("llama-long: float32 is off by", ((got - want).abs().max() / want.abs().max()).item(), "of the largest logit")
    model.half().save_pretrained(HERE / "llama-long")
    (HERE / "llama-long" / "generation_config.json").unlink(missing_ok=True)
    save_file({"ids": ids.float(), "positions": torch.tensor(positions).float(), "logits": want.float().contiguous()},
              HERE / "llama-long" / "golden.safetensors")


def ropes():
    out = []
    for head_dim, scaling in [
        (64, dict(rope_type="default", rope_theta=100000.0)),
        (128, dict(rope_type="default", rope_theta=1000000.0)),
    ] + [(64, s) for s in [
        dict(rope_type="llama3", rope_theta=500000.0, factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0, original_max_position_embeddings=8192),
        dict(rope_type="linear", rope_theta=10000.0, factor=2.5),
        dict(rope_type="yarn", rope_theta=1000000.0, factor=4.0, original_max_position_embeddings=32768),
        dict(rope_type="yarn", rope_theta=10000.0, factor=40.0, original_max_position_embeddings=4096, mscale=1.0, mscale_all_dim=0.7),
        dict(rope_type="yarn", rope_theta=150000.0, factor=32.0, original_max_position_embeddings=4096, beta_fast=16.0, beta_slow=2.0, truncate=False),
        dict(rope_type="yarn", rope_theta=10000.0, factor=8.0, original_max_position_embeddings=64, attention_factor=0.9),
    ]]:
        sizes = dict(SIZES, hidden_size=512, num_attention_heads=4, head_dim=head_dim, max_position_embeddings=131072)
        del sizes["attn_implementation"], sizes["eos_token_id"]
        config = LlamaConfig(**sizes, rope_parameters=dict(scaling))
        rotary = LlamaRotaryEmbedding(config)
        out.append({"config": sizes | {"architectures": ["LlamaForCausalLM"], "rope_parameters": scaling},
                    "frequencies": rotary.inv_freq.tolist(), "attention_factor": rotary.attention_scaling})
        if scaling["rope_type"] == "default":
            last = torch.tensor([[sizes["max_position_embeddings"] - 1]])
            for name, x in zip(("cos", "sin"), rotary(torch.zeros(1), last)):
                out[-1][name] = x[0, 0, :head_dim // 2].tolist()
    (HERE / "rope.json").write_text(json.dumps(out, indent=1) + "\n")


if sys.argv[1:] != ["--rope"]:
    every()
long()
ropes()
