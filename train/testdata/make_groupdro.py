"""Writes groupdro.json: domain weights over 50 steps of group DRO from given losses of tokens, in float64, by log-softmax
arithmetic of PyTorch as in the authors' trainer (log α + η·λ, softmax, mixture with the uniform weights, running mean).

    python make_groupdro.py > groupdro.json
"""
import json

import torch

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)
steps, domains, tokens, eta, c = 50, 3, 4, 1.0, 1e-3
# The proxy catches up with the reference in the first domain, slowly in the second; in the third neither learns.
at = torch.arange(steps)[:, None, None]
start = torch.tensor([2.0, 3.0, 6.0])[None, :, None]
rate = torch.tensor([0.2, 0.03, 0.0])[None, :, None]
proxy = start + 1.5 * torch.exp(-rate * at) * (rate > 0) + 0.3 * torch.randn(steps, domains, tokens)
reference = start + 0.3 * torch.randn(steps, domains, tokens)
proxy, reference = (x.mul(1000).round().div(1000) for x in (proxy, reference))

alpha = torch.full((domains,), 1 / domains)
mean = torch.zeros(domains)
excesses, alphas = [], []
for t in range(steps):
    excess = torch.clip(proxy[t] - reference[t], min=0).mean(dim=1)
    alpha = torch.softmax(torch.log(alpha) + eta * excess, dim=0)
    alpha = (1 - c) * alpha + c / domains
    mean = (mean * t + alpha) / (t + 1)
    excesses.append(excess.tolist())
    alphas.append(alpha.tolist())

print(json.dumps({
    "rate": eta, "smoothing": c, "proxy": proxy.tolist(), "reference": reference.tolist(),
    "excess": excesses, "alpha": alphas, "mean": mean.tolist(),
}))
