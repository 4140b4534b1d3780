#!/usr/bin/env python3
"""Writes init/gpt2 and init/qwen3, tiny models saved by transformers, and init.json: 100 steps that train them further.

    python make_init.py         # rewrites both beside this script (needs torch, transformers and tokenizers)

The weights are random, twenty times as wide as usual, so that the loss starts far from that of a model that knows nothing. gpt2 is
stored in F32, qwen3 in BF16. Both have 32 positions and are trained on rows of 16. Tokens, optimizer and step are those of
make_parity.py, so that only the first 64 tokens occur; the models are those that save_pretrained left, read back, in float32 and in float64.
"""
import json
import os
import shutil

import torch
import torch.nn.functional as F
import transformers as tr
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import make_parity as base

HERE = os.path.dirname(os.path.abspath(__file__))
VOCAB = 320  # rows; the tokenizer has 300
COMMON = dict(vocab_size=VOCAB, bos_token_id=0, eos_token_id=0, initializer_range=0.4)
MODELS = {
    "gpt2": (tr.GPT2LMHeadModel, torch.float32,
             tr.GPT2Config(**COMMON, n_embd=32, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)),
    "qwen3": (tr.Qwen3ForCausalLM, torch.bfloat16,
              tr.Qwen3Config(**COMMON, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, head_dim=8, max_position_embeddings=32, tie_word_embeddings=False)),
}


def tokenizer(path):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>"], show_progress=False,
                                 initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(["the cat sat on the mat and the dog ate the fat rat under the other apple tree"] * 4, trainer)
    tok.save(path)


def save(name):
    kind, dtype, config = MODELS[name]
    path = os.path.join(HERE, "init", name)
    shutil.rmtree(path, ignore_errors=True)
    torch.manual_seed(1)
    kind(config).to(dtype).save_pretrained(path)
    tokenizer(os.path.join(path, "tokenizer.json"))
    os.remove(os.path.join(path, "generation_config.json"))
    return kind, path


def train(kind, path, dtype):
    model = kind.from_pretrained(path, dtype=torch.float32).to(dtype).train()
    params = list(model.parameters())
    o = base.OPTIMIZER
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": o["weight_decay"]},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    opt = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"])
    losses = []
    for step in range(base.STEPS):
        batch = base.tokens(step)
        logits = model(batch[:, :-1]).logits
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        losses.append(loss.item())
        torch.nn.utils.clip_grad_norm_(params, o["clip"])
        opt.step()
    return losses


def main():
    torch.set_num_threads(1)
    out = {}
    for name in MODELS:
        kind, path = save(name)
        out[name] = {"float32": train(kind, path, torch.float32), "float64": train(kind, path, torch.float64)}
        exact = out[name]["float64"]
        print(f"{name}: loss {exact[0]:.4f} -> {exact[-1]:.4f}, FP32 within {base.relative(out[name]['float32'], exact):.1e}")
    head = {
        "about": f"made by make_init.py with transformers {tr.__version__}, PyTorch {torch.__version__.split('+')[0]}",
        "steps": base.STEPS, "batch": base.BATCH, "context": base.CONTEXT, "vocab": base.VOCAB, "optimizer": base.OPTIMIZER,
    }
    with open(os.path.join(HERE, "init.json"), "w") as f:
        f.write(json.dumps(head)[:-1] + ',\n"losses": {\n' + ",\n".join(f'"{n}": {json.dumps(c)}' for n, c in out.items()) + "\n}}\n")


if __name__ == "__main__":
    main()
