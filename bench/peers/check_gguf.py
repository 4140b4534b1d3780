#!/usr/bin/env python3
"""Checks in the real llama.cpp that `anneal export --to gguf` writes the model: tokens, logits and greedy text.

    check_gguf.py --anneal ./anneal --work DIR              makes a small random model of every family in DIR
    check_gguf.py --anneal ./anneal --work DIR RUN=DIR …    runs, each with a Hugging Face export of it

Needs llama-cpp-python, gguf, torch and transformers. For each model and each type of weights:

- ids: 1,000 texts in many scripts have the ids of the tokenizers library, and 20 of them those of `anneal tokenizer
  encode`.
- logits: after every token of a text, llama.cpp's differ from transformers' on the Hugging Face model (FP32) by at most
  what the type allows. The number is the largest difference, relative to the largest logit.
- greedy: on 20 prompts, 64 tokens are those of `anneal generate --temperature 0`. Required in F32; in other types
  rounded weights may choose otherwise, and the number is only printed.

llama.cpp computes with its cache in F32 and without flash attention. Exit code 1 if a check fails.
"""
import argparse
import json
import os
import random
import sys

import gguf
import llama_cpp
import numpy as np
import torch
import transformers as tf
from tokenizers import Tokenizer

from check_greedy import BOS, EOS, HERE, PROMPTS, TEMPLATE, anneal

NEW = 64
# llama.cpp rounds the activations of a product to the type of its weights, too, and random weights make much of it.
# GELU of gpt2 and gemma is a table of F16 in llama.cpp, hence the limit of F32.
LIMITS = {"f32": 2e-3, "f16": 1e-2, "bf16": 8e-2, "q8_0": 0.3}


def texts(seed=5, n=1000):
    """Texts of words, digits, contractions, white space and many scripts."""
    rng = random.Random(seed)
    words = open(HERE, encoding="utf-8").read().split()
    ranges = [(0x21, 0x7e), (0xa1, 0x17f), (0x391, 0x3c9), (0x410, 0x44f), (0x5d0, 0x5ea), (0x621, 0x64a),
              (0x905, 0x939), (0xe01, 0xe2e), (0x3041, 0x3093), (0x4e00, 0x9fa5), (0xac00, 0xd7a3), (0x1f600, 0x1f64f),
              (0x300, 0x33f), (0x2000, 0x206f), (0x660, 0x669), (0xb2, 0xb3), (0x2460, 0x2473)]
    spaces = [" ", " ", " ", "  ", "\n", "\n\n", "\t", " \n ", "\r\n", "   ", "\u00a0", "\u3000"]
    endings = ["'s", "'t", "'RE", "'Ve", "'m", "'LL", "'d", "'x", "'"]
    for _ in range(n):
        parts = []
        for _ in range(rng.randrange(0, 12)):
            kind = rng.randrange(5)
            if kind == 0:
                low, high = rng.choice(ranges)
                parts.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randrange(1, 9))))
            elif kind == 1:
                parts.append(str(rng.randrange(10 ** rng.randrange(1, 9))))
            elif kind == 2:
                parts.append(rng.choice(words) + rng.choice(endings))
            else:
                parts.append(rng.choice(words))
            parts.append(rng.choice(spaces))
        yield "".join(parts)


def models(tok):
    """Random models of every family, wide enough that logits differ."""
    ids = {t["content"]: t["id"] for t in tok["added_tokens"]}
    common = dict(vocab_size=1024, initializer_range=0.25, eos_token_id=ids[EOS], bos_token_id=ids[BOS])
    rope = dict(common, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=256)
    scaled = lambda **s: {"rope_theta": 1e4, **s}
    heads = dict(rope, head_dim=16)
    return {
        "llama": tf.LlamaConfig(**rope),
        "llama-tied": tf.LlamaConfig(**rope, tie_word_embeddings=True),
        "llama-wide-heads": tf.LlamaConfig(**rope, head_dim=32),
        "llama-linear": tf.LlamaConfig(**rope, rope_parameters=scaled(rope_type="linear", factor=2.0)),
        "llama-yarn": tf.LlamaConfig(**rope, rope_parameters=scaled(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
        "llama-llama3": tf.LlamaConfig(**rope, rope_parameters=scaled(
            rope_type="llama3", factor=4.0, original_max_position_embeddings=64, low_freq_factor=1.0,
            high_freq_factor=4.0)),
        "qwen2": tf.Qwen2Config(**rope),
        "qwen3": tf.Qwen3Config(**heads, tie_word_embeddings=True),
        "qwen3-yarn": tf.Qwen3Config(**heads, rope_parameters=scaled(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
        "olmo2": tf.Olmo2Config(**{**rope, "num_key_value_heads": 4}),
        "olmo2-tied": tf.Olmo2Config(**{**rope, "num_key_value_heads": 4}, tie_word_embeddings=True),
        "gemma2": tf.Gemma2Config(**heads, query_pre_attn_scalar=24, sliding_window=16, attn_logit_softcapping=20.0,
                                  final_logit_softcapping=15.0),
        "gemma3": tf.Gemma3TextConfig(**{**heads, "num_hidden_layers": 4}, query_pre_attn_scalar=24, sliding_window=16,
                                      layer_types=["sliding_attention", "full_attention"] * 2),
        "gpt2": tf.GPT2Config(**common, n_embd=64, n_layer=2, n_head=4, n_positions=256),
        "gpt2-untied": tf.GPT2Config(**common, n_embd=64, n_layer=2, n_head=4, n_positions=256,
                                     tie_word_embeddings=False),
        "mixtral": tf.MixtralConfig(**rope, num_local_experts=4, num_experts_per_tok=2),
        "qwen3moe": tf.Qwen3MoeConfig(**heads, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64,
                                      norm_topk_prob=True, decoder_sparse_step=1),
    }


def make(binary, patterns=("llama3", "gpt2", "qwen2")):
    """Yields a run of each model with what it was imported from; the models take turns with the patterns."""
    toks = {}
    for pattern in patterns:
        anneal(binary, "tokenizer", "train", "--vocab", "1024", "--special", f"{EOS},{BOS}", "--pattern", pattern,
               "--out", f"tok-{pattern}.json", HERE, __file__)
        with open(f"tok-{pattern}.json") as f:
            toks[pattern] = json.load(f)
    for i, (name, config) in enumerate(models(toks["llama3"]).items()):
        tok = toks[patterns[i % len(patterns)]]
        bos = next(t["id"] for t in tok["added_tokens"] if t["content"] == BOS)
        post = {**TEMPLATE, "special_tokens": {BOS: {"id": BOS, "ids": [bos], "tokens": [BOS]}}}
        source, run = f"made-{name}", f"import-{name}"
        if not os.path.exists(run):
            torch.manual_seed(1)
            model = tf.AutoModelForCausalLM.from_config(config).float()
            for p in model.parameters():  # gains and biases that differ
                if p.dim() == 1:
                    torch.nn.init.normal_(p, mean=float(p.detach().mean()), std=0.2)
            model.save_pretrained(source)
            with open(f"{source}/tokenizer.json", "w") as f:
                json.dump({**tok, "post_processor": post if i % 2 else tok["post_processor"]}, f)
            with open(f"{source}/tokenizer_config.json", "w") as f:
                json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BOS, "eos_token": EOS}, f)
            anneal(binary, "import", source, "--out", run)
        yield run, source


def load(path):
    return llama_cpp.Llama(path, n_ctx=256, n_batch=256, n_ubatch=256, logits_all=True, n_threads=2, n_threads_batch=2,
                           type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32, flash_attn=False,
                           verbose=False)


def same_ids(binary, run, llm):
    """How many of the texts have the ids of the tokenizers library, which on every 50th are also those of anneal."""
    equal = 0
    tokenizer = Tokenizer.from_file(f"{run}/tokenizer.json")
    tokenizer.encode_special_tokens = True  # the name of a special token is text like any other
    for i, text in enumerate(texts()):
        want = tokenizer.encode(text, add_special_tokens=False).ids
        got = llm.tokenize(text.encode(), add_bos=False, special=False)
        equal += want == got
        if want != got:
            print(f"  {text!r}: {want} and {got}", file=sys.stderr)
        if i % 50 == 0:
            with open("text.txt", "w", newline="") as f:
                f.write(text)
            mine = anneal(binary, "tokenizer", "encode", f"{run}/tokenizer.json", "text.txt")["ids"]
            if mine != want:
                sys.exit(f"anneal encodes {text!r} as {mine}, the tokenizers library as {want}")
    return equal, i + 1


def difference(llm, model, n=96):
    """The largest difference of a logit after each of n tokens, relative to the largest logit."""
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 1000, n).tolist()
    with torch.no_grad():
        want = model(torch.tensor([ids])).logits[0].double().numpy()
    llm.reset()
    llm.eval(ids)
    got = np.array(llm.scores[:n], dtype=np.float64)[:, :want.shape[1]]
    return np.abs(got - want).max() / np.abs(want).max()


def greedy(llm, ids, eos):
    llm.reset()
    llm.eval(ids)
    made = []
    while len(made) < NEW:
        token = int(np.argmax(llm.scores[llm.n_tokens - 1]))
        if token == eos:
            break
        made.append(token)
        llm.eval([token])
    return made


def check(binary, run, directory, types):
    """Prints a line for each type; the number of failed checks."""
    model = tf.AutoModelForCausalLM.from_pretrained(directory).float().eval()
    want = [anneal(binary, "generate", run, "--prompt", p, "--max-tokens", str(NEW), "--temperature", "0")
            for p in PROMPTS]
    failed = 0
    for kind in types:
        path = f"{os.path.basename(run)}.{kind}.gguf"
        report = anneal(binary, "export", run, "--to", "gguf", path, "--type", kind)
        reader = gguf.GGUFReader(path)
        assert len(reader.tensors) == report["tensors"], path
        llm = load(path)
        ids = ""
        if kind == "f32":
            equal, n = same_ids(binary, run, llm)
            ids = f"ids {equal} of {n}, "
            failed += equal != n
        d = difference(llm, model)
        made = 0
        for prompt, v in zip(PROMPTS, want):
            read = llm.tokenize(prompt.encode(), add_bos=True, special=True)
            if read != v["prompt_ids"]:
                print(f"  {prompt!r}: llama.cpp reads {read}, anneal {v['prompt_ids']}", file=sys.stderr)
                failed += 1
            made += greedy(llm, v["prompt_ids"], llm.token_eos()) == v["ids"]
        failed += not d <= LIMITS[kind]
        failed += kind == "f32" and made != len(PROMPTS)
        print(f"{os.path.basename(run):24} {report['architecture']:9} {kind:5} {ids}logits {d:.1e}, greedy {made} of "
              f"{len(PROMPTS)}", flush=True)
        llm.close()
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--anneal", required=True, help="the binary")
    p.add_argument("--work", required=True, help="a directory to make models and files in")
    p.add_argument("--types", default="f32,f16,bf16,q8_0")
    p.add_argument("--only", default="", help="models whose name contains this")
    p.add_argument("pairs", nargs="*", metavar="RUN=DIR")
    a = p.parse_args()
    binary = os.path.abspath(a.anneal)
    pairs = [tuple(os.path.abspath(x) for x in pair.split("=", 1)) for pair in a.pairs]
    os.makedirs(a.work, exist_ok=True)
    os.chdir(a.work)
    failed = 0
    for run, directory in pairs or make(binary):
        if a.only in run:
            failed += check(binary, run, directory, a.types.split(","))
    print(f"{failed} checks failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
