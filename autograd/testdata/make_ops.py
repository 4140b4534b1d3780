#!/usr/bin/env python3
"""Writes ops.json: golden forward and backward values of the neural ops, made by PyTorch in float64.

    python make_ops.py            # rewrites ops.json beside this script

File layout:

    {"about": ..., "cases": [{"name", "op", "attrs": {...}, "tensors": {NAME: {"shape", "data"}}}]}

Every tensor is row major. Inputs and upstream gradients follow offset + scale*sin(a + b*i), i the flat index, rounded to three
decimals, so that the file is self-contained and short. A gradient is named "d" + the tensor it belongs to: "dy" is
the upstream gradient of output "y", "dx" the resulting gradient of input "x". Integer tensors (ids, targets,
positions, document starts) hold whole numbers.
"""
import json
import math
import os

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def wave(shape, a, b, scale=1.0, offset=0.0):
    """Values offset + scale*sin(a + b*i), rounded to three decimals."""
    n = math.prod(shape)
    return torch.tensor([round(offset + scale * math.sin(a + b * i), 3) for i in range(n)]).reshape(shape)


def leaf(t):
    return t.clone().requires_grad_(True)


def pack(tensors):
    return {
        name: {"shape": list(t.shape), "data": t.detach().reshape(-1).tolist()}
        for name, t in tensors.items()
    }


def case(name, op, attrs, inputs, constants, outputs, upstream):
    """Runs backward from `outputs` with `upstream` gradients and returns the case with every gradient."""
    torch.autograd.backward(list(outputs.values()), [upstream["d" + k] for k in outputs])
    tensors = {**inputs, **constants, **outputs, **upstream}
    tensors.update({"d" + k: v.grad for k, v in inputs.items()})
    return {"name": name, "op": op, "attrs": attrs, "tensors": pack(tensors)}


# ---- the ops ---------------------------------------------------------------------------------------------------


def rms_norm(x, gain, eps):
    """x / sqrt(mean(x^2) + eps) * gain over the last dimension."""
    return F.rms_norm(x, (x.shape[-1],), gain, eps)


def rope(x, pos, theta):
    """Rotary embedding, half layout: element j is paired with j + E/2. x [B, T, H, E], pos [B, T]."""
    half = x.shape[-1] // 2
    freq = theta ** (-torch.arange(half) * 2.0 / x.shape[-1])  # [E/2]
    angle = pos.double()[..., None, None] * freq  # [B, T, 1, E/2]
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def attention_mask(doc_start, T):
    """[B, 1, T, T]: query t sees keys doc_start[t] <= s <= t."""
    t = torch.arange(T)
    causal = t[None, :] <= t[:, None]
    if doc_start is None:
        return causal[None, None]
    return (causal[None] & (t[None, None, :] >= doc_start[:, :, None]))[:, None]


def attention(q, k, v, doc_start):
    """q [B, T, H, E], k and v [B, T, K, E] -> [B, T, H, E]; head h reads key-value head h*K/H; scale 1/sqrt(E)."""
    q, k, v = (z.transpose(1, 2) for z in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask(doc_start, q.shape[2]), enable_gqa=True)
    return y.transpose(1, 2).contiguous()


def log_sum_exp(q, k, doc_start):
    """[B, T, H]: log of the softmax denominator over the scaled, masked scores of each query."""
    group = q.shape[2] // k.shape[2]
    scores = torch.einsum("bthe,bshe->bhts", q, k.repeat_interleave(group, 2)) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~attention_mask(doc_start, q.shape[1]), -math.inf)
    return scores.logsumexp(-1).transpose(1, 2)


def swiglu(x):
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


# ---- the cases -------------------------------------------------------------------------------------------------


def rms_norm_case():
    x, gain = leaf(wave((5, 7), 1.0, 0.7, 1.5)), leaf(wave((7,), 0.3, 0.9, offset=1.0))
    y = rms_norm(x, gain, 1e-5)
    return case("rmsnorm", "rmsnorm", {"eps": 1e-5}, {"x": x, "gain": gain}, {}, {"y": y}, {"dy": wave(y.shape, 0.2, 1.1)})


def rms_norm_tiny_case():
    """Rows of the size of sqrt(eps) and a row of zeros: eps decides the result."""
    x = wave((3, 5), 1.0, 0.7) * 4e-3
    x[1] = 0
    x, gain = leaf(x), leaf(wave((5,), 0.1, 0.5, offset=1.0))
    y = rms_norm(x, gain, 1e-5)
    return case("rmsnorm/near-eps", "rmsnorm", {"eps": 1e-5}, {"x": x, "gain": gain}, {}, {"y": y}, {"dy": wave(y.shape, 0.4, 1.3)})


def linear_case():
    x, w = leaf(wave((5, 7), 1.0, 0.7)), leaf(wave((3, 7), 0.5, 1.3))
    y = F.linear(x, w)
    return case("linear", "linear", {}, {"x": x, "w": w}, {}, {"y": y}, {"dy": wave(y.shape, 0.1, 0.9)})


def linear_bias_case():
    x, w, b = leaf(wave((5, 7), 1.0, 0.7)), leaf(wave((3, 7), 0.5, 1.3)), leaf(wave((3,), 0.7, 0.4))
    y = F.linear(x, w, b)
    return case("linear/bias", "linear_bias", {}, {"x": x, "w": w, "b": b}, {}, {"y": y}, {"dy": wave(y.shape, 0.1, 0.9)})


def layer_norm_case():
    x, gain, bias = leaf(wave((5, 7), 1.0, 0.7, 1.5, offset=2.0)), leaf(wave((7,), 0.3, 0.9, offset=1.0)), leaf(wave((7,), 0.5, 0.6))
    y = F.layer_norm(x, (7,), gain, bias, 1e-5)
    return case("layernorm", "layernorm", {"eps": 1e-5}, {"x": x, "gain": gain, "bias": bias}, {}, {"y": y}, {"dy": wave(y.shape, 0.2, 1.1)})


def gelu_case():
    """Arguments reach +-30, where the tails are exactly 0 and the identity."""
    x = wave((5, 7), 1.0, 0.7, 3.0)
    x[3], x[4] = 30.0, -30.0
    x = leaf(x)
    y = F.gelu(x, approximate="tanh")
    return case("gelu/tanh", "gelu", {}, {"x": x}, {}, {"y": y}, {"dy": wave(y.shape, 0.8, 1.2)})


def geglu_case():
    """Gates reach +-30, where the tails are exactly 0 and the identity."""
    x = wave((5, 14), 1.0, 0.7, 2.0)
    x[3, :7], x[4, :7] = 30.0, -30.0
    x = leaf(x)
    gate, up = x.chunk(2, dim=-1)
    y = F.gelu(gate, approximate="tanh") * up
    return case("geglu/tanh", "geglu", {}, {"x": x}, {}, {"y": y}, {"dy": wave(y.shape, 0.8, 1.2)})


def rope_case():
    x = leaf(wave((2, 7, 3, 6), 1.0, 0.7))
    pos = torch.tensor([[0, 1, 2, 3, 0, 1, 2], [0, 1, 0, 1, 2, 3, 1000]])
    y = rope(x, pos, 10000.0)
    return case("rope/half-layout", "rope", {"theta": 10000.0, "head_dim": 6}, {"x": x}, {"pos": pos}, {"y": y}, {"dy": wave(y.shape, 0.3, 1.7)})


def attention_case(name, doc_start):
    q, k, v = leaf(wave((2, 7, 4, 6), 1.0, 0.7, 2.0)), leaf(wave((2, 7, 2, 6), 0.5, 1.3, 2.0)), leaf(wave((2, 7, 2, 6), 0.2, 0.37))
    y = attention(q, k, v, doc_start)
    constants = {"lse": log_sum_exp(q, k, doc_start)}
    if doc_start is not None:
        constants["doc_start"] = doc_start
    attrs = {"q_heads": 4, "kv_heads": 2, "head_dim": 6, "scale": 1 / math.sqrt(6)}
    return case(name, "attention", attrs, {"q": q, "k": k, "v": v}, constants, {"y": y}, {"dy": wave(y.shape, 0.9, 1.9)})


def qk_norm_case():
    """Per-head RMSNorm with a gain over the head dimension, then RoPE, as Qwen3 does for q and k."""
    x, gain = leaf(wave((1, 5, 3, 6), 1.0, 0.7)), leaf(wave((6,), 0.3, 0.9, offset=1.0))
    pos = torch.tensor([[0, 1, 2, 0, 1]])
    y = rope(rms_norm(x, gain, 1e-5), pos, 10000.0)
    return case("qk-norm-rope", "qk_norm_rope", {"eps": 1e-5, "theta": 10000.0}, {"x": x, "gain": gain}, {"pos": pos}, {"y": y}, {"dy": wave(y.shape, 0.6, 1.1)})


def swiglu_case():
    """Arguments reach +-30, where a sloppy sigmoid overflows or loses its tail."""
    x = wave((5, 14), 1.0, 0.7, 3.0)
    x[3, :7], x[4, :7] = 30.0, -30.0
    x = leaf(x)
    y = swiglu(x)
    return case("swiglu/gate-then-up", "swiglu", {}, {"x": x}, {}, {"y": y}, {"dy": wave(y.shape, 0.8, 1.2)})


def relu_squared_case():
    x = leaf(wave((5, 7), 1.0, 0.7, 3.0))
    y = F.relu(x).square()
    return case("relu-squared", "relu_squared", {}, {"x": x}, {}, {"y": y}, {"dy": wave(y.shape, 0.8, 1.2)})


def mix_streams_case():
    """Two layers that mix the stream with what it was at the start, as the x0 skip does."""
    x, w1, w2 = leaf(wave((4, 5), 1.0, 0.7)), leaf(torch.tensor([0.9, 0.3])), leaf(torch.tensor([-1.2, 0.4]))
    y = w2[0] * (w1[0] * x + w1[1] * x) + w2[1] * x
    return case("mix-streams", "mix_streams", {}, {"x": x, "w1": w1, "w2": w2}, {}, {"y": y}, {"dy": wave(y.shape, 0.3, 0.9)})


def add_values_case():
    """Columns of qkv: 2 query heads, 1 key head, 1 value head of 3 elements, to which rows of a table are added."""
    qkv, table, weight = leaf(wave((6, 12), 1.0, 0.7)), leaf(wave((5, 3), 0.5, 1.3)), leaf(torch.tensor([0.7]))
    ids = torch.tensor([3, 0, 3, 4, 1, 3])
    y = torch.cat((qkv[:, :9], qkv[:, 9:] + weight * F.embedding(ids, table)), 1)
    return case("add-values/repeated-ids", "add_values", {}, {"qkv": qkv, "table": table, "weight": weight}, {"ids": ids}, {"y": y}, {"dy": wave(y.shape, 0.2, 1.1)})


def embedding_case():
    table = leaf(wave((6, 5), 1.0, 0.7))
    ids = torch.tensor([[3, 0, 3, 5], [1, 3, 0, 0]])
    y = F.embedding(ids, table)
    return case("embedding/repeated-ids", "embedding", {}, {"table": table}, {"ids": ids}, {"y": y}, {"dy": wave(y.shape, 0.2, 0.77)})


def cross_entropy_case():
    """The sum, not the mean, over targets that are not -100; upstream gradient 1/count as training uses it."""
    logits = leaf(wave((6, 9), 1.0, 0.7, 4.0))
    targets = torch.tensor([4, -100, 0, 8, -100, 3])
    loss = F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum")
    return case("cross-entropy/sum", "cross_entropy", {"ignore": -100, "count": 4}, {"logits": logits}, {"targets": targets}, {"loss": loss}, {"dloss": torch.tensor(0.25)})


def head_case():
    """Head and loss together: logits = hidden @ head.T, summed cross-entropy; the pair that is never materialised."""
    hidden, head = leaf(wave((7, 5), 1.0, 0.7)), leaf(wave((11, 5), 0.4, 1.1, 1.5))
    targets = torch.tensor([10, 0, -100, 3, 3, 7, -100])
    loss = F.cross_entropy(F.linear(hidden, head), targets, ignore_index=-100, reduction="sum")
    return case("head-cross-entropy/sum", "head_cross_entropy", {"ignore": -100, "count": 5}, {"hidden": hidden, "head": head}, {"targets": targets}, {"loss": loss}, {"dloss": torch.tensor(0.2)})


def regularised_head_case(name, softcap, z_loss):
    """The head with logits capped as softcap*tanh(z/softcap) and with z_loss*log(Z)^2 summed over targets that are not -100."""
    hidden, head = leaf(wave((7, 5), 1.0, 0.7)), leaf(wave((11, 5), 0.4, 1.1, 1.5))
    targets = torch.tensor([10, 0, -100, 3, 3, 7, -100])
    logits = F.linear(hidden, head)
    if softcap > 0:
        logits = softcap * torch.tanh(logits / softcap)
    loss = F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum")
    z = z_loss * torch.logsumexp(logits, -1)[targets != -100].square().sum()
    return case(name, "head_cross_entropy", {"ignore": -100, "count": 5, "softcap": softcap, "z_loss": z_loss},
                {"hidden": hidden, "head": head}, {"targets": targets}, {"loss": loss, "z": z}, {"dloss": torch.tensor(0.2), "dz": torch.tensor(0.2)})


def main():
    doc_start = torch.tensor([[0, 0, 0, 3, 3, 3, 3], [0, 1, 1, 1, 1, 5, 5]])
    cases = [
        rms_norm_case(), rms_norm_tiny_case(), layer_norm_case(), linear_case(), linear_bias_case(), gelu_case(), rope_case(),
        attention_case("attention/causal-gqa", None), attention_case("attention/documents-gqa", doc_start),
        qk_norm_case(), swiglu_case(), geglu_case(), relu_squared_case(), mix_streams_case(), add_values_case(), embedding_case(), cross_entropy_case(), head_case(),
        regularised_head_case("head-cross-entropy/z-loss", 0.0, 0.01),
        regularised_head_case("head-cross-entropy/softcap", 2.0, 0.0),
        regularised_head_case("head-cross-entropy/softcap-z-loss", 3.0, 0.1),
    ]
    about = f"made by make_ops.py with PyTorch {torch.__version__.split('+')[0]}, float64; layout and names are described there"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.json")
    with open(path, "w") as f:
        f.write('{"about": ' + json.dumps(about) + ',\n "cases": [\n')
        f.write(",\n".join(json.dumps(c) for c in cases))
        f.write("\n]}\n")
    for c in cases:
        print(c["name"], {k: t["shape"] for k, t in c["tensors"].items()})


if __name__ == "__main__":
    main()
