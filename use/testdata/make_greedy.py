#!/usr/bin/env python3
"""Writes greedy/NAME, tiny models saved by transformers, and greedy.json: how transformers continues prompts.

    python make_greedy.py         # rewrites both beside this script (needs torch, transformers and tokenizers)

The weights are random and wide, so that continuations differ as soon as a token before them does. llama and mistral
have tokenizers whose post-processor puts <|bos|> before a text; those of gpt2 and qwen3 put nothing there. The prompts
are encoded and continued by 30 greedy tokens in FP32, as the README of an export has it; a token that ends the text is
left out.
"""
import json
import os
import shutil

import torch
import transformers as tr
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPTS = ["the cat", "a", " ", "under the rat\n", "<|eos|>the", "é漢"]
EOS, BOS = "<|eos|>", "<|bos|>"
WIDE = dict(vocab_size=288, initializer_range=0.5, eos_token_id=0)
ROPE = dict(WIDE, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, max_position_embeddings=64, tie_word_embeddings=True, bos_token_id=1)
MODELS = {
    "llama": (tr.LlamaForCausalLM, tr.LlamaConfig(**ROPE), True),
    "mistral": (tr.MistralForCausalLM, tr.MistralConfig(**ROPE, head_dim=8, sliding_window=6), True),
    "qwen3": (tr.Qwen3ForCausalLM, tr.Qwen3Config(**ROPE, head_dim=8), False),
    "gpt2": (tr.GPT2LMHeadModel,
             tr.GPT2Config(**WIDE, n_embd=16, n_layer=2, n_head=2, n_positions=64, bos_token_id=0), False),
}


def tokenizer(path, bos):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=288, special_tokens=[EOS, BOS], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    text = "the cat sat on the mat and the dog ate the fat rat under the other apple tree"
    tok.train_from_iterator([text] * 4, trainer)
    if bos:
        tok.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B:1", special_tokens=[(BOS, 1)]),
        ])
    tok.save(path)


def make(name, seed):
    kind, config, bos = MODELS[name]
    path = os.path.join(HERE, "greedy", name)
    shutil.rmtree(path, ignore_errors=True)
    torch.manual_seed(seed)
    kind(config).save_pretrained(path)
    tokenizer(os.path.join(path, "tokenizer.json"), bos)
    with open(os.path.join(path, "tokenizer_config.json"), "w") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EOS, "bos_token": BOS}, f)
        f.write("\n")
    tok, model = tr.AutoTokenizer.from_pretrained(path), tr.AutoModelForCausalLM.from_pretrained(path).float()
    cases = []
    for prompt in PROMPTS:
        inputs = tok(prompt, return_tensors="pt")
        n = inputs["input_ids"].shape[1]
        ids = model.generate(**inputs, max_new_tokens=30, do_sample=False)[0].tolist()
        made = ids[n:]
        cases.append({"prompt": prompt, "read": ids[:n], "made": made[:-1] if made[-1] == 0 else made})
    return cases


def main():
    torch.set_num_threads(1)
    about = f"made by make_greedy.py with transformers {tr.__version__}, PyTorch {torch.__version__.split('+')[0]}"
    tables = []
    for seed, name in enumerate(MODELS):
        tables.append(f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in make(name, seed)) + "\n]")
    with open(os.path.join(HERE, "greedy.json"), "w") as f:
        f.write(f'{{"about": {json.dumps(about)},\n"models": {{\n' + ",\n".join(tables) + "\n}}\n")


if __name__ == "__main__":
    main()
