"""Writes positions.json: frequencies of rotary positions from transformers, and slopes of ALiBi from Bloom's own code."""
import json

import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

cases = []


def rope(text, head, theta, original, context=None, **parameters):
    context = context or int(original * parameters["factor"])
    dynamic = parameters["rope_type"] == "dynamic"
    c = LlamaConfig(hidden_size=4 * head, num_attention_heads=4, head_dim=head, max_position_embeddings=original if dynamic else context,
                    rope_parameters={"rope_theta": theta, "original_max_position_embeddings": original, **parameters})
    frequencies, attention = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](c, "cpu", seq_len=context)
    cases.append({"scaling": text, "head": head, "theta": theta, "original": original, "positions": context, "attention": attention,
                  "frequencies": frequencies.double().tolist()})


rope("linear:4", 64, 1e4, 2048, rope_type="linear", factor=4)
rope("yarn:16", 128, 1e4, 4096, rope_type="yarn", factor=16)
rope("yarn:4", 32, 1e4, 64, rope_type="yarn", factor=4)
rope("yarn:2.5:fast=16:slow=2:attention=1.3", 80, 5e5, 8192, rope_type="yarn", factor=2.5, beta_fast=16, beta_slow=2,
     attention_factor=1.3)
rope("yarn:8", 8, 1e4, 16, rope_type="yarn", factor=8)
rope("llama3:8", 128, 5e5, 8192, rope_type="llama3", factor=8, low_freq_factor=1, high_freq_factor=4)
rope("llama3:32:low=2:high=6", 64, 5e5, 8192, rope_type="llama3", factor=32, low_freq_factor=2, high_freq_factor=6)
rope("dynamic:2", 64, 1e4, 2048, context=8192, rope_type="dynamic", factor=2)
rope("dynamic:4", 16, 5e5, 2048, context=1024, rope_type="dynamic", factor=4)  # not stretched yet
short, long = [1, 1.05, 1.1, 1.1], [1, 2, 8.5, 30]
lists = "short=1,1.05,1.1,1.1:long=1,2,8.5,30"
for context in 4096, 131072:
    rope(f"longrope:32:{lists}", 8, 1e4, 4096, context=context, rope_type="longrope", factor=32, short_factor=short,
         long_factor=long)
rope(f"longrope:4:{lists}:attention=1.3", 8, 1e4, 64, rope_type="longrope", factor=4, short_factor=short,
     long_factor=long, attention_factor=1.3)

slopes = {}
for heads in [1, 2, 3, 5, 6, 7, 8, 12, 16, 20, 32, 71]:
    alibi = build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)  # [heads, 1, 2]: slope·j
    slopes[heads] = (alibi[:, 0, 1]).double().tolist()

json.dump({"rope": cases, "alibi": slopes}, open("positions.json", "w"), indent=0)
