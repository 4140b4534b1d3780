"""The shapes that anneal and PyTorch are compared on, written in PyTorch the way a careful user would write them.

Weights are plain nn.Linear, projections that can be fused are fused (q|k|v, gate|up), heads are tied. Two things can
be chosen because the best choice depends on the machine: the attention and how the head and the loss are computed.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Shape:
    family: str  # llama or gpt2
    layers: int
    dim: int
    heads: int
    ffn: int
    vocab: int
    context: int
    batch: int


SHAPES = {
    "tiny": Shape("llama", 6, 384, 6, 1024, 4096, 256, 16),
    "llama-98m": Shape("llama", 12, 768, 12, 2048, 16384, 512, 4),
    "gpt2-small": Shape("gpt2", 12, 768, 12, 3072, 50304, 1024, 4),  # 50257 tokens, padded for speed as is usual
    "llama-1.1b": Shape("llama", 20, 2048, 16, 5632, 32000, 2048, 4),
}


# ---- attention: q, k, v are [B, H, T, E] --------------------------------------------------------------------------


def attend_sdpa(q, k, v):
    """The library's own fused kernel."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attend_sdpa_fp32(q, k, v):
    """The library's kernel in FP32 inside a BF16 model, for builds whose BF16 kernel is slow."""
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True).to(v.dtype)


def future(T, device=None):
    return torch.ones(T, T, dtype=torch.bool, device=device).triu(1)


def attend_math(q, k, v):
    """Scores, mask, softmax, product. Under autocast the softmax runs in FP32."""
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))  # [B, H, T, T]
    return F.softmax(scores.masked_fill(future(q.size(2)), -math.inf), -1).to(v.dtype) @ v


def attend_math_lowp(q, k, v):
    """As attend_math, but the softmax keeps its input and output in BF16 (its sums are FP32 inside the kernel)."""
    scores = (q * (1 / math.sqrt(q.size(-1)))) @ k.transpose(-2, -1)
    with torch.autocast("cpu", enabled=False):
        weights = F.softmax(scores.masked_fill(future(q.size(2)), -math.inf), -1)
    return weights @ v


ATTENTION = {"sdpa": attend_sdpa, "sdpa-fp32": attend_sdpa_fp32, "math": attend_math, "math-lowp": attend_math_lowp}


# ---- head and loss: h is [B, T, D], targets [B, T] ----------------------------------------------------------------


def loss_full(h, head, targets):
    logits = F.linear(h, head)
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def loss_chunked(h, head, targets):
    """The library's linear_cross_entropy in pieces, which never forms all logits; operands cast as autocast would.

    In BF16 the loss it reports is rounded to BF16, too (8.44 for 8.39); its gradients are within BF16 rounding.
    """
    if torch.is_autocast_enabled("cpu"):
        kind = torch.get_autocast_dtype("cpu")
        h, head = h.to(kind), head.to(kind)
    with torch.autocast("cpu", enabled=False):
        return F.linear_cross_entropy(h.reshape(-1, h.size(-1)), head, targets.reshape(-1), options=nn.LinearCrossEntropyOptions())


LOSS = {"full": loss_full, "chunked": loss_chunked}


# ---- models -------------------------------------------------------------------------------------------------------


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.rms_norm(x, (x.size(-1),), self.weight, 1e-5)


def rope_tables(context, head_dim, base=10000.0):
    frequency = base ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angle = torch.outer(torch.arange(context).float(), frequency)
    angle = torch.cat((angle, angle), -1)
    return angle.cos(), angle.sin()


def rotate_half(x):
    half = x.size(-1) // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def split_heads(qkv, heads):
    """[B, T, 3D] -> three of [B, H, T, E]."""
    B, T, D3 = qkv.shape
    return qkv.view(B, T, 3, heads, D3 // 3 // heads).permute(2, 0, 3, 1, 4).unbind(0)


class LlamaBlock(nn.Module):
    def __init__(self, s, attend):
        super().__init__()
        self.heads, self.attend = s.heads, attend
        self.norm1, self.norm2 = RMSNorm(s.dim), RMSNorm(s.dim)
        self.qkv = nn.Linear(s.dim, 3 * s.dim, bias=False)
        self.out = nn.Linear(s.dim, s.dim, bias=False)
        self.gate_up = nn.Linear(s.dim, 2 * s.ffn, bias=False)
        self.down = nn.Linear(s.ffn, s.dim, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = split_heads(self.qkv(self.norm1(x)), self.heads)
        q = (q * cos + rotate_half(q) * sin).to(v.dtype)
        k = (k * cos + rotate_half(k) * sin).to(v.dtype)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(x.shape))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, s, attend, loss):
        super().__init__()
        self.loss = loss
        self.embed = nn.Embedding(s.vocab, s.dim)  # tied: also the head
        self.blocks = nn.ModuleList(LlamaBlock(s, attend) for _ in range(s.layers))
        self.norm = RMSNorm(s.dim)
        cos, sin = rope_tables(s.context, s.dim // s.heads)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, ids, targets):
        h = self.embed(ids)
        for block in self.blocks:
            h = block(h, self.cos, self.sin)
        return self.loss(self.norm(h), self.embed.weight, targets)


class GPT2Block(nn.Module):
    def __init__(self, s, attend):
        super().__init__()
        self.heads, self.attend = s.heads, attend
        self.norm1, self.norm2 = nn.LayerNorm(s.dim), nn.LayerNorm(s.dim)
        self.qkv, self.out = nn.Linear(s.dim, 3 * s.dim), nn.Linear(s.dim, s.dim)
        self.up, self.down = nn.Linear(s.dim, s.ffn), nn.Linear(s.ffn, s.dim)

    def forward(self, x):
        q, k, v = split_heads(self.qkv(self.norm1(x)), self.heads)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, s, attend, loss):
        super().__init__()
        self.loss = loss
        self.embed, self.position = nn.Embedding(s.vocab, s.dim), nn.Embedding(s.context, s.dim)
        self.blocks = nn.ModuleList(GPT2Block(s, attend) for _ in range(s.layers))
        self.norm = nn.LayerNorm(s.dim)

    def forward(self, ids, targets):
        h = self.embed(ids) + self.position(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            h = block(h)
        return self.loss(self.norm(h), self.embed.weight, targets)


def build(shape, attention, loss):
    model = {"llama": Llama, "gpt2": GPT2}[shape.family](shape, ATTENTION[attention], LOSS[loss])
    for p in model.parameters():
        if p.dim() == 2:
            nn.init.normal_(p, 0, 0.02)
    return model


def flops_per_token(model, shape):
    """6 per parameter used in matrix products, and 6*L*T*D for causal attention (counted half)."""
    matrices = sum(p.numel() for name, p in model.named_parameters() if p.dim() == 2 and not name.startswith("position"))
    return 6 * matrices + 6 * shape.layers * shape.context * shape.dim
