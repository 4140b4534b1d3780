"""Loads with transformers what either test leaves in DIR: `go test ./hf -run TestExportGivesTheModelBack -args -keep DIR`,
`go test ./interop -run TestExportGivesBackWhatWasImported -args -keep DIR`.

Checks the class, the logits against logits.json, the tokenizer against the tokenizers library, and generation.
Usage, from this directory: python check_export.py DIR
"""
import json
import os
import sys

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

classes = {"llama": "LlamaForCausalLM", "linear": "LlamaForCausalLM", "yarn": "LlamaForCausalLM", "llama3": "LlamaForCausalLM",
           "qwen3": "Qwen3ForCausalLM", "windows": "Qwen3ForCausalLM", "mistral": "MistralForCausalLM",
           "gemma3": "Gemma3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM", "gpt2": "GPT2LMHeadModel", "gpt2-untied": "GPT2LMHeadModel"}
for name, cls in classes.items():
    golden = json.load(open(f"{name}/logits.json"))
    plain = Tokenizer.from_file(f"{name}/tokenizer.json")
    for suffix in ("", "-sharded"):
        path = f"{sys.argv[1]}/{name}{suffix}"
        if not os.path.exists(path):
            continue
        model, info = AutoModelForCausalLM.from_pretrained(path, output_loading_info=True)
        assert type(model).__name__ == cls, type(model)
        assert not any(info.values()), info
        dtype = model.dtype
        with torch.no_grad():
            eager = {"experts_implementation": "eager"} if "moe" in name else {}  # grouped products have no float64
            wide = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, **eager).double()
            logits = wide(torch.tensor([golden["ids"]])).logits[0]
        off = (logits - torch.tensor(golden["logits"], dtype=torch.float64)).abs().max().item()
        assert off < 1e-6, off
        tok = AutoTokenizer.from_pretrained(path)
        text = "the cat sat on the rat"
        assert tok(text)["input_ids"] == plain.encode(text).ids, (tok(text), plain.encode(text).ids)
        assert tok.decode(plain.encode(text).ids) == text
        assert (tok.bos_token_id, tok.eos_token_id, tok.pad_token_id) == (1, 2, 0)
        assert (model.config.bos_token_id, model.generation_config.eos_token_id) == (1, 2)
        inputs = tok("the cat", return_tensors="pt")
        out = model.generate(**inputs, max_new_tokens=4, do_sample=False)
        print(f"{path}: {cls}, {dtype}, logits within {off:.1e}, {type(tok).__name__}, generated {out.shape[1]} tokens")
