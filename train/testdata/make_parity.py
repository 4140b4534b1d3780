#!/usr/bin/env python3
"""Writes parity.json: 100 training steps of two tiny language models in PyTorch, to be reproduced step for step.

    python make_parity.py         # rewrites parity.json beside this script (about a minute)

Everything a re-implementation needs follows from integers, so no weights and no tokens are stored.

Hash.  splitmix64(z), on unsigned 64-bit integers that wrap around:

    z += 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)

Weights.  Tensors are numbered from 0 in the order of "tensors" in the JSON (Hugging Face names and order, linear
weights stored [out, in], row major). Element e of matrix t is

    u = float64(splitmix64(t << 32 | e) >> 11) * 2^-53              in [0, 1)
    w = float32(0.034641016151377546 * (2*u - 1))                   uniform, standard deviation 0.02

evaluated in float64 and rounded once; 0.0346... is 0.02*sqrt(3). Every norm gain is 1. The float64 run starts from
the same float32-rounded values.

Tokens.  Position p = 0..16 of sequence b = 0..3 of step s = 0..99 (steps counted from 0):

    h(p)   = splitmix64(1 << 63 | s << 32 | b << 16 | p)
    tok(0) = h(0) % 64
    tok(p) = h(p) % 64                  if (h(p) >> 32) % 8 == 0     (one in eight is noise)
             (5*tok(p-1) + 7) % 64      otherwise

Inputs are tok(0..15), targets tok(1..16): 64 targets a step, each sequence one document, positions 0..15.

Model.  Llama: RMSNorm, rotary embedding in the half layout over the whole head dimension, grouped-query attention
(query head h reads key-value head h*K/H), scale 1/sqrt(head dimension), SwiGLU silu(gate)*up, no biases. With
qk_norm, q and k pass through an RMSNorm over the head dimension before the rotary embedding, as in Qwen3.

Step.  loss = mean cross-entropy over the 64 targets; total = L2 norm of all gradients; every gradient times
min(1, 1.0/(total + 1e-6)); AdamW with the constants in "optimizer" (decay on tensors of rank >= 2, embeddings
included, none on norm gains). "loss" and "grad_norm" (before clipping) of step s are measured before its update. A
tied head is one tensor: its gradient is the sum of both uses and it is counted, clipped and decayed once.
"""
import json
import math
import os

import torch
import torch.nn.functional as F

MASK = (1 << 64) - 1
STEPS, BATCH, CONTEXT, VOCAB = 100, 4, 16, 64
OPTIMIZER = {"name": "adamw", "lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip": 1.0}
BASE = {"vocab": VOCAB, "layers": 2, "dim": 48, "heads": 4, "kv_heads": 2, "head_dim": 12, "ffn": 96, "context": CONTEXT,
        "rope_theta": 10000.0, "norm_eps": 1e-5}
CONFIGS = [
    ("llama-tied", {**BASE, "tied": True, "qk_norm": False}),
    ("llama-untied-qk-norm", {**BASE, "tied": False, "qk_norm": True}),
]


def splitmix64(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def tensor_shapes(c):
    """(name, shape) of every tensor, in the order that numbers them."""
    d, q, kv = c["dim"], c["heads"] * c["head_dim"], c["kv_heads"] * c["head_dim"]
    out = [("model.embed_tokens.weight", (c["vocab"], d))]
    for i in range(c["layers"]):
        layer = [
            ("input_layernorm", (d,)),
            ("self_attn.q_proj", (q, d)), ("self_attn.k_proj", (kv, d)), ("self_attn.v_proj", (kv, d)), ("self_attn.o_proj", (d, q)),
            ("post_attention_layernorm", (d,)),
            ("mlp.gate_proj", (c["ffn"], d)), ("mlp.up_proj", (c["ffn"], d)), ("mlp.down_proj", (d, c["ffn"])),
        ]
        if c["qk_norm"]:
            layer[5:5] = [("self_attn.q_norm", (c["head_dim"],)), ("self_attn.k_norm", (c["head_dim"],))]
        out += [(f"model.layers.{i}.{name}.weight", shape) for name, shape in layer]
    out.append(("model.norm.weight", (d,)))
    if not c["tied"]:
        out.append(("lm_head.weight", (c["vocab"], d)))
    return out


def initial_weights(c, dtype):
    weights = {}
    for t, (name, shape) in enumerate(tensor_shapes(c)):
        if len(shape) == 1:
            w = torch.ones(shape)
        else:
            u = [(splitmix64(t << 32 | e) >> 11) * 2.0**-53 for e in range(math.prod(shape))]
            w = torch.tensor([0.034641016151377546 * (2 * x - 1) for x in u], dtype=torch.float64).float().reshape(shape)
        weights[name] = w.to(dtype).requires_grad_(True)
    return weights


def tokens(step):
    """[BATCH, CONTEXT + 1] token ids of one step."""
    rows = []
    for b in range(BATCH):
        row = []
        for p in range(CONTEXT + 1):
            h = splitmix64(1 << 63 | step << 32 | b << 16 | p)
            noise = p == 0 or (h >> 32) % 8 == 0
            row.append(h % VOCAB if noise else (5 * row[-1] + 7) % VOCAB)
        rows.append(row)
    return torch.tensor(rows)


def rope(x, c):
    """x [B, H, T, E]; the angles are made in float64 and rounded to the type of x."""
    half = c["head_dim"] // 2
    freq = c["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), freq)  # [T, E/2]
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def forward(w, c, ids):
    """Logits [B, T, V] in the type of the weights; under autocast products are BF16, norms and RoPE stay in that type."""
    B, T = ids.shape
    full = w["model.norm.weight"].dtype
    norm = lambda x, name: F.rms_norm(x.to(full), (x.shape[-1],), w[name + ".weight"], c["norm_eps"])
    linear = lambda x, name: F.linear(x, w[name + ".weight"])
    heads = lambda x: x.view(B, T, -1, c["head_dim"]).transpose(1, 2)  # [B, H, T, E]
    x = F.embedding(ids, w["model.embed_tokens.weight"])  # [B, T, D]
    for i in range(c["layers"]):
        p = f"model.layers.{i}."
        h = norm(x, p + "input_layernorm")
        q, k, v = (heads(linear(h, p + f"self_attn.{z}_proj")) for z in "qkv")
        if c["qk_norm"]:
            q, k = norm(q, p + "self_attn.q_norm"), norm(k, p + "self_attn.k_norm")
        q, k = rope(q.to(full), c), rope(k.to(full), c)
        a = F.scaled_dot_product_attention(q, k.to(q.dtype), v.to(q.dtype), is_causal=True, enable_gqa=True)
        x = x + linear(a.transpose(1, 2).reshape(B, T, -1), p + "self_attn.o_proj")
        h = norm(x, p + "post_attention_layernorm")
        x = x + linear(F.silu(linear(h, p + "mlp.gate_proj")) * linear(h, p + "mlp.up_proj"), p + "mlp.down_proj")
    x = norm(x, "model.norm")
    return F.linear(x, w["lm_head.weight"] if "lm_head.weight" in w else w["model.embed_tokens.weight"])


def train(c, dtype, autocast=False):
    """Runs all steps; returns the curves, the first step's gradient norms and the final weights' sums."""
    w = initial_weights(c, dtype)
    params = list(w.values())
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": OPTIMIZER["weight_decay"]},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    opt = torch.optim.AdamW(groups, lr=OPTIMIZER["lr"], betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["eps"])
    losses, norms, first = [], [], []
    for step in range(STEPS):
        batch = tokens(step)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            logits = forward(w, c, batch[:, :-1])
        if autocast:
            logits = logits.float()
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        if step == 0:
            first = [p.grad.norm().item() for p in params]
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(params, OPTIMIZER["clip"]).item())
        opt.step()
    final = [[p.detach().double().sum().item(), p.detach().double().square().sum().item()] for p in params]
    return {"loss": losses, "grad_norm": norms, "first_grad_norms": first, "final_sum_and_sum_of_squares": final}


def check_against_transformers(c):
    """The forward pass above equals the original Hugging Face model in FP32 (skipped where transformers is missing)."""
    try:
        import transformers as tr
    except ImportError:
        return None
    kind = (tr.Qwen3Config, tr.Qwen3ForCausalLM) if c["qk_norm"] else (tr.LlamaConfig, tr.LlamaForCausalLM)
    config = kind[0](
        vocab_size=c["vocab"], hidden_size=c["dim"], intermediate_size=c["ffn"], num_hidden_layers=c["layers"],
        num_attention_heads=c["heads"], num_key_value_heads=c["kv_heads"], head_dim=c["head_dim"], rms_norm_eps=c["norm_eps"],
        rope_theta=c["rope_theta"], max_position_embeddings=c["context"], tie_word_embeddings=c["tied"], attention_bias=False)
    model = kind[1](config)
    w = initial_weights(c, torch.float32)
    for i, (name, shape) in enumerate(tensor_shapes(c)):  # gains of 1 would hide a missing norm
        if len(shape) == 1:
            w[name] = 1 + 0.5 * torch.sin(torch.arange(shape[0]) + i)
        else:
            w[name] = w[name].detach() * 10
    missing, unexpected = model.load_state_dict(w, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    ids = tokens(0)[:, :-1]
    with torch.no_grad():
        ours, theirs = forward(w, c, ids), model(input_ids=ids).logits
    error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    assert error < 1e-5, error
    return error


def relative(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def main():
    torch.set_num_threads(1)
    out = []
    for name, c in CONFIGS:
        error = check_against_transformers(c)
        runs = {"float64": train(c, torch.float64), "float32": train(c, torch.float32), "bf16_autocast": train(c, torch.float32, autocast=True)}
        shapes = tensor_shapes(c)
        w = initial_weights(c, torch.float32)
        out.append({
            "name": name, "model": c,
            "tensors": [{"name": n, "shape": list(s), "first": w[n].detach().reshape(-1)[:3].tolist()} for n, s in shapes],
            **runs,
        })
        exact = runs["float64"]["loss"]
        print(f"{name}: loss {exact[0]:.4f} -> {exact[-1]:.4f}, FP32 within {relative(runs['float32']['loss'], exact):.1e}, "
              f"BF16 within {relative(runs['bf16_autocast']['loss'], exact):.1e}, against transformers {error}")
    head = {
        "about": f"made by make_parity.py with PyTorch {torch.__version__.split('+')[0]}; its opening comment defines weights, tokens, model and step",
        "steps": STEPS, "batch": BATCH, "optimizer": OPTIMIZER,
        "splitmix64_of_0_1_2": [str(splitmix64(i)) for i in range(3)], "first_tokens": tokens(0).tolist(), "last_tokens": tokens(STEPS - 1).tolist(),
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parity.json")
    with open(path, "w") as f:
        f.write(json.dumps(head)[:-1] + ',\n"configs": [\n' + ",\n".join(json.dumps(c) for c in out) + "\n]}\n")


if __name__ == "__main__":
    main()
