#!/usr/bin/env python3
"""Opens an exported model with transformers and prints what it computes, to compare with anneal.

    check_hf.py DIR [--prompt TEXT] [--ids 1,2,3] [--new 16]

Prints one JSON object: the class that opened the model, its parameter count, the prompt's token ids from DIR's own
tokenizer, the text they decode to, the mean loss of the prompt's tokens after the first (nats), the logits after the last token and a greedy
continuation. Everything is computed in FP32 from the stored weights.
"""
import argparse
import json

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, AutoTokenizer


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("--prompt", default="func main() {\n\tfmt.Println(")
    p.add_argument("--ids", help="comma-separated token ids instead of a prompt (no tokenizer is needed)")
    p.add_argument("--new", type=int, default=16, help="tokens to continue with")
    return p.parse_args()


def main():
    a = parse_args()
    model = AutoModelForCausalLM.from_pretrained(a.dir, dtype=torch.float32).eval()
    tokenizer = None if a.ids else AutoTokenizer.from_pretrained(a.dir)
    ids = [int(i) for i in a.ids.split(",")] if a.ids else tokenizer(a.prompt, add_special_tokens=False)["input_ids"]
    x = torch.tensor([ids])
    with torch.no_grad():
        logits = model(input_ids=x).logits[0]  # [T, V]
        out = model.generate(x, attention_mask=torch.ones_like(x), do_sample=False, max_new_tokens=a.new, pad_token_id=0)[0].tolist()
    result = {
        "class": type(model).__name__, "parameters": model.num_parameters(), "ids": ids,
        "loss": F.cross_entropy(logits[:-1], x[0, 1:]).item() if len(ids) > 1 else None,
        "last_logits": logits[-1].tolist(), "greedy_ids": out[len(ids):],
    }
    if tokenizer:
        result["tokenizer"] = type(tokenizer).__name__
        result["decoded"], result["greedy_text"] = tokenizer.decode(ids), tokenizer.decode(out[len(ids):])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
