"""Writes the goldens of this folder with PyTorch and Hugging Face transformers (made with torch 2.15.0, transformers 5.24.0).

    python golden.py        # needs torch, transformers, safetensors

For each of two small Qwen3 models (tied with the new rope_parameters, untied with the old rope_theta) it saves the model folder as
transformers does and golden.safetensors: ids of packed sequences, coefficients, log-probabilities, entropies, the logits after each
sequence, the gradient of sum(coef * logp), and three AdamW steps on fixed gradients.
"""

import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

LENGTHS = [5, 70, 1, 33]
ADAMW = ["model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight"]


def write(folder: str, tied: bool, theta: float) -> None:
    torch.manual_seed(1 if tied else 2)
    config = Qwen3Config(
        vocab_size=48, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=8, max_position_embeddings=256, rms_norm_eps=1e-6, tie_word_embeddings=tied, initializer_range=0.2,
        rope_parameters={"rope_type": "default", "rope_theta": theta}, eos_token_id=[3, 4], attn_implementation="eager",
    )
    model = Qwen3ForCausalLM(config).float()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.2)
    out = {}
    ids, coef, logps, entropies, logits = [], [], [], [], []
    for n in LENGTHS:
        x = torch.randint(0, 48, (n,))
        c = torch.randn(n)
        y = model(input_ids=x[None]).logits[0]
        lp = torch.log_softmax(y, -1)
        first = torch.zeros(1)
        token = torch.cat([first, lp[:-1].gather(1, x[1:, None])[:, 0]])
        entropy = torch.cat([first, -(lp.exp() * lp).sum(-1)[:-1]])
        (c * token).sum().backward()
        ids.append(x.float()), coef.append(c), logps.append(token.detach()), entropies.append(entropy.detach()), logits.append(y[-1].detach())
    out |= {"ids": torch.cat(ids), "coef": torch.cat(coef), "logp": torch.cat(logps), "entropy": torch.cat(entropies),
            "logits": torch.stack(logits), "lengths": torch.tensor(LENGTHS).float()}
    out |= {"grad." + name: p.grad.clone() for name, p in model.named_parameters()}
    path = pathlib.Path(__file__).parent / folder
    model.save_pretrained(path)
    (path / "generation_config.json").unlink(missing_ok=True)
    if tied:
        chosen = {name: p for name, p in model.named_parameters() if name in ADAMW}
        optimizer = torch.optim.AdamW(chosen.values(), lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        for step in range(3):
            for name, p in chosen.items():
                p.grad = out["grad." + name] * (1 - 0.75 * step)
            optimizer.step()
        for name, p in chosen.items():
            state = optimizer.state[p]
            out |= {"adamw.w." + name: p.detach(), "adamw.m." + name: state["exp_avg"], "adamw.v." + name: state["exp_avg_sq"]}
    else:  # as transformers 4 wrote it
        c = json.loads((path / "config.json").read_text())
        c["rope_theta"] = c.pop("rope_parameters")["rope_theta"]
        c["rope_scaling"] = None
        c["torch_dtype"] = c.pop("dtype")
        (path / "config.json").write_text(json.dumps(c, indent=2) + "\n")
    save_file({k: v.contiguous() for k, v in out.items()}, path / "golden.safetensors")


write("tied", True, 10000.0)
write("untied", False, 1000000.0)
