"""Writes distill.json: distillation in float64 by torch's autograd, for device/cpu/distill_test.go. torch alone.

The divergence is written as in the literature: softmax over all columns, the k likeliest of the teacher's gathered,
and the others summed to one outcome.
"""

import json
import torch
import torch.nn.functional as F

torch.manual_seed(1)
cases = []
for rows, cols, k, tau, alpha, softcap, z in [
    (5, 33, 4, 1.0, 0.5, 0.0, 0.0),
    (4, 70, 16, 2.0, 0.9, 0.0, 1e-2),
    (3, 40, 40, 1.5, 0.3, 0.0, 0.0),
    (4, 65, 1, 0.5, 1.0, 5.0, 0.0),
    (3, 129, 64, 4.0, 0.7, 30.0, 1e-3),
]:
    teacher = 3 * torch.randn(rows, cols, dtype=torch.float64)
    raw = (3 * torch.randn(rows, cols, dtype=torch.float64)).requires_grad_()
    targets = torch.randint(cols, (rows,))
    targets[1] = -100
    logits = softcap * torch.tanh(raw / softcap) if softcap else raw
    keep = targets != -100
    p_all = torch.softmax(teacher / tau, -1)
    p, ids = p_all.topk(k, dim=-1)
    rest = (1 - p.sum(-1)).clamp(min=0) if k < cols else torch.zeros(rows, dtype=torch.float64)
    mask = torch.zeros_like(p_all, dtype=torch.bool).scatter(1, ids, True)
    if k < cols:
        rest = p_all.masked_fill(mask, 0).sum(-1)
    log_q = F.log_softmax(logits / tau, -1)
    kl = (p * (p.log() - log_q.gather(1, ids))).sum(-1)
    if k < cols:
        log_q_rest = log_q.masked_fill(mask, -torch.inf).logsumexp(-1)
        kl = kl + rest * (rest.log() - log_q_rest)
    kl = torch.where(keep, kl, torch.zeros_like(kl))
    ce = F.cross_entropy(logits, targets, ignore_index=-100, reduction="none")
    log_z = logits.logsumexp(-1)
    total = ((1 - alpha) * ce + alpha * tau**2 * kl + z * keep.double() * log_z**2).sum()
    total.backward()
    cases.append(dict(
        rows=rows, cols=cols, k=k, temperature=tau, weight=alpha, softcap=softcap, zloss=z,
        teacher=teacher.flatten().tolist(), logits=logits.detach().flatten().tolist(), targets=targets.tolist(),
        ids=ids.flatten().tolist(), p=p.flatten().tolist(), rest=rest.tolist(), loss=ce.detach().tolist(),
        kl=kl.detach().tolist(), grad=raw.grad.flatten().tolist(),
    ))
with open("distill.json", "w") as f:
    json.dump(cases, f)
    f.write("\n")
