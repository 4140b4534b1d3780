#!/usr/bin/env python3
"""Makes gguf_names.json: for each model in hf/testdata that llama.cpp has an architecture for, the architecture and
llama.cpp's name of every tensor, from the tables of its own package (gguf, from PyPI).

    make_gguf_names.py            in this directory
"""
import glob
import json
import os
import re

import gguf
from safetensors import safe_open

ARCHITECTURES = {
    "LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "MixtralForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3", "Qwen3MoeForCausalLM": "qwen3moe",
    "GPT2LMHeadModel": "gpt2", "Gemma2ForCausalLM": "gemma2", "Gemma3ForCausalLM": "gemma3",
    "Olmo2ForCausalLM": "olmo2",
}


def main():
    arch_of = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
    out = {}
    for directory in sorted(glob.glob("../../hf/testdata/*/")):
        try:
            with open(directory + "config.json") as f:
                config = json.load(f)
            files = glob.glob(directory + "*.safetensors")
            name = ARCHITECTURES[config["architectures"][0]]
        except (OSError, KeyError):
            continue
        layers = config.get("num_hidden_layers", config.get("n_layer"))
        table = gguf.get_tensor_name_map(arch_of[name], layers)
        names = {}
        for path in files:
            with safe_open(path, "np") as f:
                for tensor in f.keys():
                    merged = re.sub(r"experts\.\d+\.", "experts.", tensor)  # one tensor for all of a layer
                    merged = re.sub(r"^model\.(layers\.\d+)\.block_sparse_moe\.experts", r"\1.feed_forward.experts",
                                    merged)
                    names[tensor] = table.get_name(merged, try_suffixes=(".weight", ".bias"))
        out[os.path.basename(directory.rstrip("/"))] = {"architecture": name, "names": names}
    with open("gguf_names.json", "w") as f:
        json.dump(out, f, indent=1, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main()
