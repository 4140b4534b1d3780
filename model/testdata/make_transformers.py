#!/usr/bin/env python3
"""Writes gemma2.json, gemma3.json, llama.json, mixtral.json, olmo2.json, phi3.json, qwen2.json, qwen3_moe.json, sinks.json, a Llama with the attention of gpt-oss, and mla.json, a dense DeepSeek-V2: one forward and backward pass of tiny models of transformers in float64.

    python make_transformers.py   # rewrites them beside this script (needs torch and transformers)

Element i of the n-th parameter, in the order of the fixture, where fused weights are one, is

    round(0.3 * sin(0.7*i + 1.3*n), 3) + offset

with offset 1 for the gains of norms and 0 otherwise; Gemma stores gains without the 1. "loss" is the cross-entropy
summed over the tokens. With experts, "balance" [L] and "z" [L] are the losses of the routers of each layer, and
gradients are those of loss + tokens/L * Σ (0.3*balance + 0.2*z).

transformers computes norms, rotations and softmaxes in float32; here float32 is replaced by float64.
"""
import json
import math
import os

import torch

torch.float32 = torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

from torch.nn import functional as F  # noqa: E402
from transformers import (DeepseekV2Config, DeepseekV2ForCausalLM, Gemma2Config, Gemma2ForCausalLM,  # noqa: E402
                          Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, Olmo2Config, Olmo2ForCausalLM, Phi3Config, Phi3ForCausalLM, Qwen2Config, Qwen2ForCausalLM,
                          Qwen3MoeConfig, Qwen3MoeForCausalLM)
from transformers.models.gpt_oss import modeling_gpt_oss  # noqa: E402
from transformers.models.llama import modeling_llama  # noqa: E402
from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func  # noqa: E402

V, T, D, L, H, K, HEAD, FFN = 13, 10, 12, 4, 4, 2, 4, 20
EXPERTS, CHOSEN, EXPERT = 5, 2, 6
RANK, ROPE = 6, 2
COMMON = dict(vocab_size=V, hidden_size=D, num_hidden_layers=L, num_attention_heads=H, num_key_value_heads=K, head_dim=HEAD,
              intermediate_size=FFN, max_position_embeddings=T, pad_token_id=None, bos_token_id=None, eos_token_id=None,
              attn_implementation="eager", rms_norm_eps=1e-5)


def gemma2():
    c = Gemma2Config(
        **COMMON, query_pre_attn_scalar=6, sliding_window=4, final_logit_softcapping=3.0, attn_logit_softcapping=0.5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    return Gemma2ForCausalLM(c)


def mla():
    c = DeepseekV2Config(
        **{**COMMON, "head_dim": ROPE, "num_key_value_heads": H, "rms_norm_eps": 1e-6}, q_lora_rank=None, kv_lora_rank=RANK,
        qk_rope_head_dim=ROPE, qk_nope_head_dim=HEAD, v_head_dim=HEAD + ROPE, first_k_dense_replace=L,
        tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    return DeepseekV2ForCausalLM(c)


def llama():  # tied, with grouped queries: as SmolLM
    return LlamaForCausalLM(LlamaConfig(**COMMON, tie_word_embeddings=True,
                                        rope_parameters={"rope_type": "default", "rope_theta": 500.0}))


def mixtral():
    c = MixtralConfig(**{**COMMON, "intermediate_size": EXPERT}, num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN, sliding_window=None,
                      tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    c._experts_implementation = "eager"
    return MixtralForCausalLM(c)


def sinks():
    m = LlamaForCausalLM(LlamaConfig(**COMMON, tie_word_embeddings=True,
                                     rope_parameters={"rope_type": "default", "rope_theta": 500.0}))
    modeling_llama.eager_attention_forward = modeling_gpt_oss.eager_attention_forward
    for layer in m.model.layers:
        layer.self_attn.sinks = torch.nn.Parameter(torch.empty(H))
    return m


def olmo2():
    return Olmo2ForCausalLM(Olmo2Config(**{**COMMON, "num_key_value_heads": H}, tie_word_embeddings=False,
                                        rope_parameters={"rope_type": "default", "rope_theta": 500.0}))


def phi3():
    return Phi3ForCausalLM(Phi3Config(
        **{**COMMON, "num_attention_heads": 3, "num_key_value_heads": 1}, sliding_window=4, original_max_position_embeddings=4, tie_word_embeddings=False,
        rope_parameters={"rope_type": "longrope", "rope_theta": 500.0, "short_factor": [1.0, 1.1], "long_factor": [1.2, 2.5]}))


def qwen2():
    return Qwen2ForCausalLM(Qwen2Config(**COMMON, tie_word_embeddings=True, use_sliding_window=False,
                                        rope_parameters={"rope_type": "default", "rope_theta": 500.0}))


def gemma3():
    c = Gemma3TextConfig(
        **COMMON, query_pre_attn_scalar=6, sliding_window=4, final_logit_softcapping=3.0, tie_word_embeddings=True,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 500.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})
    return Gemma3ForCausalLM(c)


def qwen3_moe():
    c = Qwen3MoeConfig(
        **COMMON, num_experts=EXPERTS, num_experts_per_tok=CHOSEN, moe_intermediate_size=EXPERT, norm_topk_prob=True,
        decoder_sparse_step=1, mlp_only_layers=[], tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    c._experts_implementation = "eager"
    return Qwen3MoeForCausalLM(c)


def parameters(family):
    """Name of every parameter of ours, and the names of its parts in transformers."""
    yield "embed", ["model.embed_tokens.weight"]
    for i in range(L):
        ours, at = f"layers.{i}.", f"model.layers.{i}."
        if family != "olmo2":
            yield ours + "attention_norm", [at + "input_layernorm.weight"]
        if family == "mla":
            yield ours + "attention.down", [at + f"self_attn.{x}.weight" for x in ("q_proj", "kv_a_proj_with_mqa")]
            yield ours + "attention.latent_norm", [at + "self_attn.kv_a_layernorm.weight"]
            yield ours + "attention.up", [at + "self_attn.kv_b_proj.weight"]
            yield ours + "attention.out", [at + "self_attn.o_proj.weight"]
            yield ours + "mlp_norm", [at + "post_attention_layernorm.weight"]
            yield ours + "mlp.gate_up", [at + "mlp.gate_proj.weight", at + "mlp.up_proj.weight"]
            yield ours + "mlp.down", [at + "mlp.down_proj.weight"]
            continue
        if family == "phi3":
            yield ours + "attention.qkv", [at + "self_attn.qkv_proj.weight"]
            yield ours + "attention.out", [at + "self_attn.o_proj.weight"]
            yield ours + "mlp_norm", [at + "post_attention_layernorm.weight"]
            yield ours + "mlp.gate_up", [at + "mlp.gate_up_proj.weight"]
            yield ours + "mlp.down", [at + "mlp.down_proj.weight"]
            continue
        yield ours + "attention.qkv", [at + f"self_attn.{x}_proj.weight" for x in "qkv"]
        if family == "qwen2":
            yield ours + "attention.qkv.bias", [at + f"self_attn.{x}_proj.bias" for x in "qkv"]
        yield ours + "attention.out", [at + "self_attn.o_proj.weight"]
        if family == "sinks":
            yield ours + "attention.sinks", [at + "self_attn.sinks"]
        if family in ("sinks", "qwen2", "llama"):
            yield ours + "mlp_norm", [at + "post_attention_layernorm.weight"]
            yield ours + "mlp.gate_up", [at + "mlp.gate_proj.weight", at + "mlp.up_proj.weight"]
            yield ours + "mlp.down", [at + "mlp.down_proj.weight"]
            continue
        if family not in ("gemma2", "mixtral"):
            yield ours + "attention.q_norm", [at + "self_attn.q_norm.weight"]
            yield ours + "attention.k_norm", [at + "self_attn.k_norm.weight"]
        if family == "olmo2":
            yield ours + "attention_post_norm", [at + "post_attention_layernorm.weight"]
            yield ours + "mlp.gate_up", [at + "mlp.gate_proj.weight", at + "mlp.up_proj.weight"]
            yield ours + "mlp.down", [at + "mlp.down_proj.weight"]
            yield ours + "mlp_post_norm", [at + "post_feedforward_layernorm.weight"]
            continue
        if family in ("gemma2", "gemma3"):
            yield ours + "attention_post_norm", [at + "post_attention_layernorm.weight"]
            yield ours + "mlp_norm", [at + "pre_feedforward_layernorm.weight"]
            yield ours + "mlp.gate_up", [at + "mlp.gate_proj.weight", at + "mlp.up_proj.weight"]
            yield ours + "mlp.down", [at + "mlp.down_proj.weight"]
            yield ours + "mlp_post_norm", [at + "post_feedforward_layernorm.weight"]
            continue
        yield ours + "mlp_norm", [at + "post_attention_layernorm.weight"]
        yield ours + "mlp.router", [at + "mlp.gate.weight"]
        yield ours + "experts.gate_up", [at + "mlp.experts.gate_up_proj"]
        yield ours + "experts.down", [at + "mlp.experts.down_proj"]
    yield "norm", ["model.norm.weight"]
    if family in ("qwen3_moe", "mixtral", "olmo2", "phi3"):
        yield "head", ["lm_head.weight"]


def ours_first(name, x):
    """Rows of attention.up in our order, keys of all heads before values, from those of transformers, head by head."""
    if not name.endswith("attention.up"):
        return x
    x = x.reshape(H, -1, RANK)
    return torch.cat([x[:, :HEAD].reshape(-1, RANK), x[:, HEAD:].reshape(-1, RANK)])


def theirs_first(name, x):
    if not name.endswith("attention.up"):
        return x
    k, v = x.reshape(-1, RANK).split([H * HEAD, H * (HEAD + ROPE)])
    return torch.cat([k.reshape(H, HEAD, RANK), v.reshape(H, -1, RANK)], 1)


def write(family, m):
    m = m.double()
    theirs = dict(m.named_parameters())
    for n, (name, parts) in enumerate(parameters(family)):
        gain = name.endswith("norm")
        i = 0
        for part in parts:
            p = theirs[part]
            x = [round(0.3 * math.sin(0.7 * (i + j) + 1.3 * n), 3) for j in range(p.numel())]
            i += p.numel()
            with torch.no_grad():
                p.copy_(theirs_first(name, torch.tensor(x)).reshape(p.shape) + (1.0 if gain and "gemma" not in family else 0.0))
    tokens = torch.tensor([[(3 * r + 5 * t + t * t) % V for t in range(T)] for r in range(2)])
    targets = torch.tensor([[(7 * r + 2 * t + 1) % V for t in range(T)] for r in range(2)])
    routers = {"output_router_logits": True} if family in ("qwen3_moe", "mixtral") else {}
    out = m(input_ids=tokens, use_cache=False, **routers)
    loss = total = F.cross_entropy(out.logits.reshape(-1, V), targets.reshape(-1), reduction="sum")
    fixture = {}
    if routers:
        layers = [x.reshape(-1, EXPERTS) for x in out.router_logits]
        balance = [load_balancing_loss_func((x,), EXPERTS, CHOSEN) for x in layers]
        z = [(torch.logsumexp(x, -1) ** 2).mean() for x in layers]
        total = loss + 2 * T / L * sum(0.3 * b + 0.2 * s for b, s in zip(balance, z))
        fixture = {"balance": [b.item() for b in balance], "z": [s.item() for s in z]}
    total.backward()
    fixture = {
        **fixture, "tokens": tokens.tolist(), "targets": targets.tolist(), "loss": loss.item(),
        "logits": out.logits.detach().reshape(-1).tolist(),
        "grads": [{"name": name, "grad": torch.cat([ours_first(name, theirs[p].grad).reshape(-1) for p in parts]).tolist()}
                  for name, parts in parameters(family)],
    }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), family + ".json"), "w") as f:
        json.dump(fixture, f)
        f.write("\n")


if __name__ == "__main__":
    write("gemma2", gemma2())
    write("gemma3", gemma3())
    write("llama", llama())
    write("mixtral", mixtral())
    write("olmo2", olmo2())
    write("phi3", phi3())
    write("qwen2", qwen2())
    write("qwen3_moe", qwen3_moe())
    write("sinks", sinks())
    write("mla", mla())
