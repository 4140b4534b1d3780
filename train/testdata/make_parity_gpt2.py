#!/usr/bin/env python3
"""Writes parity_gpt2.json: 100 training steps of a tiny GPT-2 of transformers, to be reproduced step for step.

    python make_parity_gpt2.py         # rewrites parity_gpt2.json beside this script (needs torch and transformers)

Tokens, optimizer and step are those of make_parity.py. Weights, too, with this order of tensors, by their transformers
names, which counts gains and biases: wte, wpe, for each layer ln_1, attn.c_attn, attn.c_proj, ln_2, mlp.c_fc, mlp.c_proj, each
its weight and its bias, and ln_f. Matrices count as [out, in], which transformers keeps transposed. Gains are 1, biases 0.
The head is wte. Decay is on tensors of rank 2, the tables included.
"""
import json
import math
import os

import torch
import torch.nn.functional as F
import transformers

import make_parity as base

MODEL = {"vocab": base.VOCAB, "layers": 2, "dim": 48, "heads": 4, "kv_heads": 4, "head_dim": 12, "ffn": 192, "context": base.CONTEXT,
         "norm_eps": 1e-5, "tied": True}


def names():
    """Tensors in the order that numbers them, and whether transformers keeps them as [in, out]."""
    yield from (("wte.weight", False), ("wpe.weight", False))
    for i in range(MODEL["layers"]):
        for part in ["ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"]:
            yield f"h.{i}.{part}.weight", not part.startswith("ln")
            yield f"h.{i}.{part}.bias", False
    yield from (("ln_f.weight", False), ("ln_f.bias", False))


def build(dtype):
    c = MODEL
    config = transformers.GPT2Config(
        vocab_size=c["vocab"], n_positions=c["context"], n_embd=c["dim"], n_layer=c["layers"], n_head=c["heads"], n_inner=c["ffn"],
        layer_norm_epsilon=c["norm_eps"], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config).to(dtype)
    params = dict(model.transformer.named_parameters())
    assert set(params) == {n for n, _ in names()}
    with torch.no_grad():
        for t, (name, turned) in enumerate(names()):
            p = params[name]
            if p.dim() == 1:
                p.fill_(0.0 if name.endswith("bias") else 1.0)
                continue
            shape = tuple(reversed(p.shape)) if turned else tuple(p.shape)
            u = [(base.splitmix64(t << 32 | e) >> 11) * 2.0**-53 for e in range(math.prod(shape))]
            w = torch.tensor([0.034641016151377546 * (2 * x - 1) for x in u], dtype=torch.float64).float().reshape(shape)
            p.copy_(w.T if turned else w)
    return model, [params[n] for n, _ in names()]


def train(dtype):
    model, params = build(dtype)
    o = base.OPTIMIZER
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": o["weight_decay"]},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    opt = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"])
    losses, norms = [], []
    for step in range(base.STEPS):
        batch = base.tokens(step)
        logits = model(batch[:, :-1]).logits
        loss = F.cross_entropy(logits.reshape(-1, base.VOCAB), batch[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(params, o["clip"]).item())
        opt.step()
    return {"loss": losses, "grad_norm": norms}


def main():
    torch.set_num_threads(1)
    runs = {"float64": train(torch.float64), "float32": train(torch.float32)}
    exact = runs["float64"]["loss"]
    print(f"loss {exact[0]:.4f} -> {exact[-1]:.4f}, FP32 within {base.relative(runs['float32']['loss'], exact):.1e}")
    out = {
        "about": f"made by make_parity_gpt2.py with transformers {transformers.__version__}, PyTorch {torch.__version__.split('+')[0]}",
        "steps": base.STEPS, "batch": base.BATCH, "optimizer": base.OPTIMIZER, "configs": [{"name": "gpt2", "model": MODEL, **runs}],
    }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "parity_gpt2.json"), "w") as f:
        json.dump(out, f)
        f.write("\n")


if __name__ == "__main__":
    main()
