"""Writes a GGUF file of a decoder with random weights for llama.cpp. Arguments: the shape as JSON, "bf16", "f16" or "f32", and the file."""

import json
import sys

import gguf
import numpy as np

shape, precision, path = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
types = {"bf16": gguf.GGMLQuantizationType.BF16, "f16": gguf.GGMLQuantizationType.F16, "f32": gguf.GGMLQuantizationType.F32}
random = np.random.default_rng(0)
out = gguf.GGUFWriter(path, "qwen3")
out.add_context_length(shape["positions"])
out.add_embedding_length(shape["hidden"])
out.add_block_count(shape["layers"])
out.add_feed_forward_length(shape["ff"])
out.add_head_count(shape["heads"])
out.add_head_count_kv(shape["kv_heads"])
out.add_key_length(shape["head_dim"])
out.add_value_length(shape["head_dim"])
out.add_rope_freq_base(1e4)
out.add_layer_norm_rms_eps(1e-6)
out.add_vocab_size(shape["vocab"])
# The tokens only have to be there: the benchmark works with ids.
out.add_tokenizer_model("gpt2")
out.add_tokenizer_pre("gpt-2")
out.add_token_list([f"t{i}" for i in range(shape["vocab"])])
out.add_token_types([gguf.TokenType.NORMAL] * shape["vocab"])
out.add_token_merges(["t 0"])


def norm(name, dim):
    out.add_tensor(name + ".weight", np.ones(dim, np.float32))


def matrix(name, rows, columns):
    data = gguf.quants.quantize(random.standard_normal((rows, columns), np.float32) * np.float32(0.02), types[precision])
    out.add_tensor(name + ".weight", data, raw_dtype=types[precision])


d, q, kv = shape["hidden"], shape["heads"] * shape["head_dim"], shape["kv_heads"] * shape["head_dim"]
matrix("token_embd", shape["vocab"], d)
norm("output_norm", d)
for i in range(shape["layers"]):
    layer = f"blk.{i}."
    for name, dim in (("attn_norm", d), ("ffn_norm", d), ("attn_q_norm", shape["head_dim"]), ("attn_k_norm", shape["head_dim"])):
        norm(layer + name, dim)
    for name, rows, columns in (("attn_q", q, d), ("attn_k", kv, d), ("attn_v", kv, d), ("attn_output", d, q),
                                ("ffn_gate", shape["ff"], d), ("ffn_up", shape["ff"], d), ("ffn_down", d, shape["ff"])):
        matrix(layer + name, rows, columns)
out.write_header_to_file()
out.write_kv_data_to_file()
out.write_tensors_to_file()
out.close()
