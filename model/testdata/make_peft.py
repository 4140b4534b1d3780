#!/usr/bin/env python3
"""Writes lora.json and dora.json: one forward and backward pass of a tiny Llama of transformers with adapters of peft, in float64.

    python make_peft.py   # rewrites them beside this script (needs torch, transformers and peft)

Weights follow from the formula of make_transformers.py; those of magnitudes have the offset of norms. Fused weights have one A, so
the projections of attention get the same numbers, and the gradient of A is the sum of theirs. Frozen weights have no gradient.
"""
import json
import math
import os

import make_transformers as base  # makes float32 float64
import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

RANK, ALPHA = 3, 4.0
FUSED = {"attention.qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], "attention.out": ["self_attn.o_proj"],
         "mlp.gate_up": ["mlp.gate_proj", "mlp.up_proj"], "mlp.down": ["mlp.down_proj"]}


def parameters(dora):
    """Name of every parameter of ours, and the names of its parts in peft."""
    top = "base_model.model.model."
    yield "embed", [top + "embed_tokens.weight"]
    for i in range(base.L):
        ours, at = f"layers.{i}.", f"{top}layers.{i}."
        yield ours + "attention_norm", [at + "input_layernorm.weight"]
        yield ours + "attention.qkv", [at + x + ".base_layer.weight" for x in FUSED["attention.qkv"]]
        yield ours + "attention.out", [at + "self_attn.o_proj.base_layer.weight"]
        yield ours + "mlp_norm", [at + "post_attention_layernorm.weight"]
        yield ours + "mlp.gate_up", [at + x + ".base_layer.weight" for x in FUSED["mlp.gate_up"]]
        yield ours + "mlp.down", [at + "mlp.down_proj.base_layer.weight"]
        for name, parts in FUSED.items():
            yield ours + name + ".lora_a", [at + x + ".lora_A.default.weight" for x in parts]
            yield ours + name + ".lora_b", [at + x + ".lora_B.default.weight" for x in parts]
            if dora:
                yield ours + name + ".dora_magnitude", [at + x + ".lora_magnitude_vector.default.weight" for x in parts]
    yield "norm", [top + "norm.weight"]


def write(name, dora):
    m = LlamaForCausalLM(LlamaConfig(**base.COMMON, tie_word_embeddings=True,
                                     rope_parameters={"rope_type": "default", "rope_theta": 500.0}))
    m = get_peft_model(m, LoraConfig(r=RANK, lora_alpha=ALPHA, use_dora=dora, target_modules="all-linear")).double()
    theirs = dict(m.named_parameters())
    for n, (ours, parts) in enumerate(parameters(dora)):
        offset = 1.0 if ours.endswith(("norm", "dora_magnitude")) else 0.0
        i = 0
        for part in parts:
            p = theirs[part]
            x = [round(0.3 * math.sin(0.7 * (i + j) + 1.3 * n), 3) + offset for j in range(p.numel())]
            if not ours.endswith("lora_a"):
                i += p.numel()
            with torch.no_grad():
                p.copy_(torch.tensor(x).reshape(p.shape))
    tokens = torch.tensor([[(3 * r + 5 * t + t * t) % base.V for t in range(base.T)] for r in range(2)])
    targets = torch.tensor([[(7 * r + 2 * t + 1) % base.V for t in range(base.T)] for r in range(2)])
    out = m(input_ids=tokens, use_cache=False)
    loss = F.cross_entropy(out.logits.reshape(-1, base.V), targets.reshape(-1), reduction="sum")
    loss.backward()

    def grad(ours, parts):
        list = [theirs[p].grad for p in parts]
        if list[0] is None:
            return []
        return (sum(list) if ours.endswith("lora_a") else torch.cat([g.reshape(-1) for g in list])).reshape(-1).tolist()

    fixture = {"tokens": tokens.tolist(), "targets": targets.tolist(), "loss": loss.item(),
               "logits": out.logits.detach().reshape(-1).tolist(),
               "grads": [{"name": ours, "grad": grad(ours, parts)} for ours, parts in parameters(dora)]}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".json"), "w") as f:
        json.dump(fixture, f)
        f.write("\n")


if __name__ == "__main__":
    write("lora", False)
    write("dora", True)
