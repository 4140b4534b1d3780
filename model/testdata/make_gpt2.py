"""Writes gpt2.json: one forward and backward pass of GPT2LMHeadModel in float64, for gpt2_test.go.

The model is random in a way that any language repeats: element i of the n-th tensor, in the order of the fixture, is

    round(scale * sin(0.7*i + 1.3*n), 3) + offset

with offset 1 for the gains of norms and 0 otherwise. Its matrices are [in, out] as transformers keeps them; here they are
filled as [out, in] and transposed, so that the fixture has the layout of a linear layer. The loss is the sum over tokens of
the cross-entropy with the given targets.

    python make_gpt2.py     (needs torch and transformers)
"""

import json
import math
import os

import torch
import transformers
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
V, T, D, L, H = 13, 10, 8, 2, 2


def wave(shape, n, scale, offset):
    count = math.prod(shape)
    x = [round(scale * math.sin(0.7 * i + 1.3 * n), 3) + offset for i in range(count)]
    return torch.tensor(x).reshape(shape)


def names():
    """Tensors in the order of the fixture, and whether they are stored [in, out]."""
    yield "wte.weight", False
    yield "wpe.weight", False
    for i in range(L):
        for part in ["ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"]:
            yield f"h.{i}.{part}.weight", "ln" not in part
            yield f"h.{i}.{part}.bias", False
    yield "ln_f.weight", False
    yield "ln_f.bias", False


def main():
    config = transformers.GPT2Config(
        vocab_size=V, n_positions=T, n_embd=D, n_layer=L, n_head=H, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config).double().eval()
    params = dict(model.transformer.named_parameters())
    order = list(names())
    assert set(params) == {n for n, _ in order}
    with torch.no_grad():
        for n, (name, turned) in enumerate(order):
            p = params[name]
            shape = tuple(reversed(p.shape)) if turned else tuple(p.shape)
            gain = "ln_" in name and name.endswith("weight")
            x = wave(shape, n, 0.3 if len(shape) == 2 else 0.2, 1.0 if gain else 0.0)
            p.copy_(x.T if turned else x)
    tokens = torch.tensor([[(3 * r + 5 * t + t * t) % V for t in range(9)] for r in range(2)])
    targets = torch.tensor([[(7 * r + 2 * t + 1) % V for t in range(9)] for r in range(2)])
    logits = model(tokens).logits
    loss = F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), reduction="sum")
    loss.backward()
    grads = []
    for name, turned in order:
        g = params[name].grad
        grads.append({"name": name, "grad": (g.T if turned else g).reshape(-1).tolist()})
    out = {
        "about": f"made by make_gpt2.py with transformers {transformers.__version__}, PyTorch {torch.__version__.split('+')[0]}, float64",
        "config": {"vocab": V, "context": T, "dim": D, "layers": L, "heads": H, "eps": config.layer_norm_epsilon},
        "tokens": tokens.tolist(), "targets": targets.tolist(), "loss": loss.item(), "logits": logits.reshape(-1).tolist(), "grads": grads,
    }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt2.json"), "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")
    print(loss.item())


if __name__ == "__main__":
    main()
