#!/usr/bin/env python3
"""Writes experts.json: golden values of mixtures of experts, made in float64 by the blocks of transformers.

    python make_experts.py        # rewrites experts.json beside this script

Each case is {"name", "k", "normalise", "tensors": {NAME: {"shape", "data"}}}. Inputs follow offset + scale*sin(a + b*i),
i the flat index, rounded to three decimals. "x" [N, D], "router" [E, D], "gate_up" [E·2F, D], "down" [E·D, F]; with a
shared expert "shared_gate_up" [2S, D], "shared_down" [D, S] and "shared_gate" [1, D]. "y" is the result. A gradient is
named "d" + its tensor: of sum(y*dy) + N*(0.3*balance + 0.2*z), where balance is transformers' load_balancing_loss_func
of this layer and z the mean of the squared log-sum-exp of the router's logits.

transformers casts router probabilities to float32; here float32 is replaced by float64.
"""
import json
import math
import os

import torch

torch.float32 = torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

from transformers import Qwen2MoeConfig, Qwen3MoeConfig  # noqa: E402
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock  # noqa: E402
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock, load_balancing_loss_func  # noqa: E402

N, D, F, S, E = 9, 6, 5, 7, 5


def wave(shape, a, b, scale=1.0, offset=0.0):
    n = math.prod(shape)
    return torch.tensor([round(offset + scale * math.sin(a + b * i), 3) for i in range(n)]).reshape(shape)


def case(name, k, normalise, shared):
    common = dict(hidden_size=D, moe_intermediate_size=F, num_experts=E, num_experts_per_tok=k, norm_topk_prob=normalise,
                  hidden_act="silu", experts_implementation="eager")
    if shared:
        m = Qwen2MoeSparseMoeBlock(Qwen2MoeConfig(shared_expert_intermediate_size=S, **common))
    else:
        m = Qwen3MoeSparseMoeBlock(Qwen3MoeConfig(**common))
    m = m.double()
    x = wave((N, D), 1.0, 0.7).requires_grad_(True)
    inputs = {"router": (m.gate.weight, wave((E, D), 0.3, 1.9)),
              "gate_up": (m.experts.gate_up_proj, wave((E, 2 * F, D), 2.0, 1.3)),
              "down": (m.experts.down_proj, wave((E, D, F), 0.1, 0.9))}
    if shared:
        gate_up = wave((2 * S, D), 0.5, 1.1)
        inputs["shared_gate"] = (m.shared_expert_gate.weight, wave((1, D), 0.9, 1.4))
        inputs["shared_down"] = (m.shared_expert.down_proj.weight, wave((D, S), 0.2, 1.6))
        inputs["shared_gate_part"] = (m.shared_expert.gate_proj.weight, gate_up[:S])
        inputs["shared_up_part"] = (m.shared_expert.up_proj.weight, gate_up[S:])
    with torch.no_grad():
        for p, v in inputs.values():
            p.copy_(v)
    y = m(x[None])[0]
    dy = wave((N, D), 0.4, 1.2)
    logits = m.gate(x)[0]
    balance = load_balancing_loss_func((logits,), E, k)
    z = (torch.logsumexp(logits, -1) ** 2).mean()
    ((y * dy).sum() + N * (0.3 * balance + 0.2 * z)).backward()
    out = {"x": x, "dx": x.grad, "y": y, "dy": dy, "balance": balance, "z": z}
    for name_, (p, _) in inputs.items():
        out[name_], out["d" + name_] = p, p.grad
    if shared:
        for d in ("", "d"):
            out[d + "shared_gate_up"] = torch.cat([out.pop(d + "shared_gate_part"), out.pop(d + "shared_up_part")])
    for d in ("", "d"):
        for name_ in ("gate_up", "down"):
            out[d + name_] = out[d + name_].reshape(-1, out[d + name_].shape[-1])
    tensors = {k_: {"shape": list(t.shape), "data": t.detach().reshape(-1).tolist()} for k_, t in out.items()}
    return {"name": name, "k": k, "normalise": normalise, "tensors": tensors}


def main():
    cases = [case("qwen3-moe/normalised", 2, True, False), case("qwen3-moe/not-normalised", 3, False, False),
             case("qwen3-moe/one-expert", 1, False, False), case("qwen2-moe/shared-expert", 2, False, True)]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "experts.json")
    with open(path, "w") as f:
        f.write('{"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")


main()
