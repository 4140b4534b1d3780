#!/usr/bin/env python3
"""Checks that transformers, called as the README of an export says, continues prompts as `anneal generate` does.

    check_greedy.py --anneal ./anneal RUN=DIR …     runs, each with an export of it, or with what it was imported from
    check_greedy.py --anneal ./anneal --work DIR    makes small models of every family in DIR, exported and imported

Takes 20 prompts and 30 greedy tokens, in FP32 on the CPU: the tokens of a prompt and those that follow must be equal.
Prints a line for each model and, at the end, how many continuations of how many are equal; exit code 1 if any differs.
"""
import argparse
import json
import os
import subprocess
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPTS = [
    "func main() {\n\tfmt.Println(", "package ", "// Copyright", "if err != nil {\n\t\treturn ",
    "type Reader struct {", "import (\n\t\"", "for i := range ", "The quick brown fox", "a", " ", "\n", "0123456789",
    "switch x := v.(type) {\n\tcase ", "éà ü 漢字 🙂", "<|endoftext|>",
    "func (s *Server) ", "return nil, ", "var ErrNot", "\t\t}\n\t}\n", "TEXT ·add(SB), NOSPLIT, $0-",
]
NEW = 30
HERE = os.path.abspath(__file__)  # also a text to learn a vocabulary from


def transformers_continues(directory):
    """The ids of each prompt and of its continuation; the call is that of the export's README."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(directory).float()
    for prompt in PROMPTS:
        inputs = tokenizer(prompt, return_tensors="pt")
        outputs = model.generate(**inputs, max_new_tokens=NEW, do_sample=False)
        n = inputs["input_ids"].shape[1]
        ids = outputs[0].tolist()
        eos = model.generation_config.eos_token_id
        stops = eos if isinstance(eos, list) else [eos]
        made = ids[n:-1] if ids[-1] in stops and len(ids) > n else ids[n:]
        yield ids[:n], made


def anneal(binary, *args):
    done = subprocess.run([binary, *args, "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"anneal {' '.join(args)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def compare(binary, run, directory):
    """How many of the prompts both continue with the same tokens."""
    equal = 0
    for prompt, (read, made) in zip(PROMPTS, transformers_continues(directory)):
        v = anneal(binary, "generate", run, "--prompt", prompt, "--max-tokens", str(NEW), "--temperature", "0")
        if (v["prompt_ids"], v["ids"]) == (read, made):
            equal += 1
        else:
            print(f"  {prompt!r}: anneal reads {v['prompt_ids']} and adds {v['ids']}, transformers {read} and {made}",
                  file=sys.stderr)
    print(f"{equal:3d} of {len(PROMPTS)} equal   {run} and {directory}", flush=True)
    return equal


TRAINED = {
    "llama": [], "llama-tied": ["model.tie_embeddings=true"], "llama-muon": ["optimizer.name=muon"],
    "llama-yarn": ["model.rope_scaling=yarn:2", "model.rope_original_context=64"],
    "llama-linear": ["model.rope_scaling=linear:2"], "llama-ntk": ["model.rope_scaling=ntk:2"],
    "qwen3": ["model.qk_norm=true"], "qwen3-windows": ["model.qk_norm=true", "model.attention=window:16,full"],
    "mistral": ["model.attention=window:16"], "gpt2": ["model.family=gpt2"],
}
CONFIG = """
precision: fp32
model: {layers: 2, dim: 64, heads: 4, context: 128}
data: {path: data}
train: {steps: 150, batch_tokens: 1024, eval_every: 150, eval_tokens: 2048}
optimizer: {lr: 3e-3}
"""


def trained(binary):
    """Runs of every family that can be exported, and their exports."""
    with open("run.yaml", "w") as f:
        f.write(CONFIG)
    anneal(binary, "data", "sample", "--vocab", "1024", "--out", "data")
    for name, overrides in TRAINED.items():
        anneal(binary, "train", "run.yaml", *overrides, "--out", f"run-{name}")
        anneal(binary, "export", f"run-{name}", f"export-{name}")
        yield f"run-{name}", f"export-{name}"
        if name == "llama":  # and from there to a run and an export again
            anneal(binary, "import", f"export-{name}", "--out", "again")
            yield "again", f"export-{name}"
            anneal(binary, "export", "again", "export-again")
            yield "again", "export-again"


BOS, EOS = "<|bos|>", "<|endoftext|>"
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": BOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
}


def imported(binary):
    """Random models of transformers whose tokenizers put this and that around a text, imported and exported again."""
    import transformers as tf

    anneal(binary, "tokenizer", "train", "--vocab", "1024", "--special", f"{EOS},{BOS}", "--out", "tok.json", HERE)
    with open("tok.json") as f:
        tok = json.load(f)
    ids = {t["content"]: t["id"] for t in tok["added_tokens"]}
    wide = dict(vocab_size=1024, initializer_range=0.3, eos_token_id=ids[EOS])
    rope = dict(wide, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=128, bos_token_id=ids[BOS])
    gpt2 = dict(wide, n_embd=32, n_layer=2, n_head=2, n_positions=128, bos_token_id=ids[EOS])
    plain = tok["post_processor"]
    template = {**TEMPLATE, "special_tokens": {BOS: {"id": BOS, "ids": [ids[BOS]], "tokens": [BOS]}}}
    llama = tf.LlamaConfig(**rope)
    for name, shape, post, config in [
        ("llama-template", llama, {"type": "Sequence", "processors": [plain, template]}, {}),
        ("llama-add-bos", llama, plain, {"add_bos_token": True}),  # without effect in transformers 5
        ("llama-no-bos", llama, template, {"add_bos_token": False}),  # as is this
        ("qwen3", tf.Qwen3Config(**rope, head_dim=8, tie_word_embeddings=True), plain, {"add_bos_token": False}),
        ("mistral", tf.MistralConfig(**rope, sliding_window=16), template, {"add_bos_token": True}),
        ("gpt2", tf.GPT2Config(**gpt2), plain, {"bos_token": EOS}),
    ]:
        torch.manual_seed(1)
        source = f"made-{name}"
        AutoModelForCausalLM.from_config(shape).save_pretrained(source)
        with open(f"{source}/tokenizer.json", "w") as f:
            json.dump({**tok, "post_processor": post}, f)
        with open(f"{source}/tokenizer_config.json", "w") as f:
            json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BOS, "eos_token": EOS, **config}, f)
        anneal(binary, "import", source, "--out", f"import-{name}")
        yield f"import-{name}", source
        anneal(binary, "export", f"import-{name}", f"export-of-{name}")
        yield f"import-{name}", f"export-of-{name}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--anneal", required=True, help="the binary")
    p.add_argument("--work", help="an empty directory to make models in")
    p.add_argument("pairs", nargs="*", metavar="RUN=DIR")
    a = p.parse_args()
    binary = os.path.abspath(a.anneal)
    total = equal = 0
    for pair in a.pairs:
        equal, total = equal + compare(binary, *pair.split("=", 1)), total + len(PROMPTS)
    if a.work:
        os.makedirs(a.work, exist_ok=True)
        os.chdir(a.work)
        for make in (trained, imported):
            for run, directory in make(binary):
                equal, total = equal + compare(binary, run, directory), total + len(PROMPTS)
    print(f"{equal} of {total} equal")
    sys.exit(equal != total)


if __name__ == "__main__":
    main()
