#!/usr/bin/env python3
"""Makes interchange.json with the `tokenizers` and `tiktoken` libraries (0.23.3 and 0.14.0).

It holds texts; variants of hf_llama3.json (top-level fields to replace) with the ids that the tokenizers library gives
the texts under each, and the ids if it leaves special tokens in the text alone ("plain"); and the ids that both libraries give them under files that this package writes, with the SHA-256 of
those files. Ids are stored as their number and the start of the SHA-256 of them as little-endian 32-bit numbers.

Run it here, with the Go toolchain on the PATH: python3 make_interchange.py
"""
import base64
import hashlib
import json
import os
import random
import struct
import subprocess
import tempfile
import unicodedata

import tiktoken
from tokenizers import Tokenizer

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
NANOCHAT = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"

PIECES = """the of and func return err != nil { } ( ) [ ] := // /* */ if for range it's they'll DON'T we've I'M he'D 's 'S camelCase
HTTPServer XMLHttpRequest snake_case ALLCAPS aB ABc Abc'll x/y/z /path/to <b> <sep> <mask> <one> two<one>two 3.14 1234567 007 ٣٤٥ ² ½ Ⅷ
été naïve e\u0301te\u0301 A\u030a \u212b \u1e9b\u0323 straße ǅungla ʰa ªº Жук говорит 中文 日本語の 한국어 \u1112\u1161\u11ab עברית العَرَبِيَّة ไทย हिन्दी 😀 👩‍🚀 ﬁn ſ 'ſ <|endoftext|>
\u0958 q\u0307\u0323 \u0344 ... --- === ??? a' ' '' \"json\" \\n 100% @x #y""".split()
WHITE = [" ", " ", " ", " ", "", "", "  ", "   ", "\n", "\n\n", "\t", "\t\t", "\r\n", " \n ", "\u00a0", "\u3000", "\u2028", "\n  \n", "/\n/"]


def texts(rng):
    letters = [chr(c) for c in range(0x30000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    out = []
    for _ in range(160):
        out.append("".join(rng.choice(PIECES) + rng.choice(WHITE) for _ in range(rng.randint(1, 16))))
    for _ in range(60):
        out.append("".join(rng.choice(letters) + rng.choice(["", "", " ", "\u0301", "a", "B", "1", "\n", "'s"]) for _ in range(rng.randint(1, 30))))
    for unit in ["a", " ", "\n", "1", "-", "aA", "\u0301", "e\u0301", "中", " \n", "'s", "/\n", "\t x"]:
        out.append(unit * rng.randint(90, 130))
    for mark in ["\u0323", "\u0301\u0323", "\u0344"]:
        out.append("x q" + mark * 40 + "\u0307 y")
    return out


def digest(ids):
    return [len(ids), hashlib.sha256(struct.pack("<%dI" % len(ids), *ids)).hexdigest()[:16]]


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def sequence(*parts, use_regex=False):
    return {"type": "Sequence", "pretokenizers": list(parts) +
            [{"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}]}


def added(*tokens):
    out = [{"id": 0, "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}]
    for i, (content, marks) in enumerate(tokens):
        t = {"id": 600 + i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
        t.update({m: True for m in marks})
        out.append(t)
    return out


BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
BOS = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
       "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
       "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}}
EOS = json.loads(json.dumps(BOS))
EOS["single"].reverse()

VARIANTS = {
    "o200k": {"pre_tokenizer": sequence(split(O200K))},
    "o200k removed": {"pre_tokenizer": sequence(split(O200K, "Removed", True))},
    "qwen2": {"pre_tokenizer": sequence(split(QWEN2)), "normalizer": {"type": "NFC"}},
    "nanochat": {"pre_tokenizer": sequence(split(NANOCHAT))},
    "r50k": {"pre_tokenizer": sequence(split(R50K))},
    "digits, then gpt2": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, use_regex=True)},
    "runs of digits": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False}, use_regex=True)},
    "three splits": {"pre_tokenizer": sequence(split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(LLAMA3))},
    "a string": {"pre_tokenizer": sequence({"type": "Split", "pattern": {"String": "()"}, "behavior": "Isolated", "invert": False}, split(LLAMA3))},
    "anchors": {"pre_tokenizer": sequence(split(r"^[^\s]|\p{L}$|\s+$"))},
    "empty matches": {"pre_tokenizer": sequence(split(r"(?:'s|\d)?(?=[a-m]|$)"))},
    "stripping what is a token": {"added_tokens": added(("<b>", ["rstrip"]), ("\n", []), ("\n\n", []))},
    "stripping": {"added_tokens": added(("<sep>", ["lstrip"]), ("<mask>", ["lstrip", "rstrip"]), ("<b>", ["rstrip"]))},
    "single word": {"added_tokens": added(("<one>", ["single_word"]), ("nil", ["single_word"]), ("the", ["single_word", "lstrip"]))},
    "normalized": {"normalizer": {"type": "NFC"}, "added_tokens": added(("\u00e9t", ["normalized"]), ("A\u030a", ["normalized"]), ("e\u0301", []), ("<sep>", ["normalized"]))},
    "runs of spaces": {"added_tokens": added(*((" " * n, ["normalized"]) for n in range(24, 1, -1)))},
    "normalized last": {"added_tokens": added(("two<on", ["normalized"]), ("<one>", []))},
    "beginning": {"post_processor": {"type": "Sequence", "processors": [BYTES, BOS]}},
    "end": {"post_processor": EOS},
    "both": {"post_processor": {"type": "RobertaProcessing", "sep": ["<|endoftext|>", 0], "cls": ["!", 1], "trim_offsets": True, "add_prefix_space": False}},
}


def byte_values():
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    rest = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(rest)}


def written():
    """Reads what this package writes, with both libraries."""
    cases, out = texts(random.Random(7)), {}
    with tempfile.TemporaryDirectory() as dir:
        subprocess.run(["go", "test", "-count=1", "-run", "^TestLibrariesReadWhatIsWritten$", ".."], env=dict(os.environ, ANNEAL_WRITE_TO=dir))
        for name in sorted(os.listdir(dir)):
            path = os.path.join(dir, name)
            files = sorted(os.listdir(path))
            hashes = {f: hashlib.sha256(open(os.path.join(path, f), "rb").read()).hexdigest() for f in files}
            if name == "tiktoken":
                ranks = {}
                for line in open(os.path.join(path, files[0]), "rb"):
                    token, rank = line.split()
                    ranks[base64.b64decode(token)] = int(rank)
                enc = tiktoken.Encoding("written", pat_str=O200K, mergeable_ranks=ranks, special_tokens={})
                ids = [enc.encode_ordinary(t) for t in cases]
            elif name == "gpt2":
                from tokenizers.implementations import ByteLevelBPETokenizer
                tok = ByteLevelBPETokenizer.from_file(os.path.join(path, "vocab.json"), os.path.join(path, "merges.txt"))
                tok.add_special_tokens(["<|endoftext|>"])
                ids = [tok.encode(t).ids for t in cases]
            else:
                tok = Tokenizer.from_file(os.path.join(path, "tokenizer.json"))
                ids = [tok.encode(t).ids for t in cases]
            out[name] = {"files": hashes, "ids": [digest(i) for i in ids]}
    return out


def main():
    cases = texts(random.Random(7))
    variants = {}
    for name, fields in VARIANTS.items():
        doc = json.load(open("hf_llama3.json"))
        doc.update(fields)
        tok = Tokenizer.from_str(json.dumps(doc))
        variants[name] = {"fields": fields, "ids": [digest(tok.encode(t).ids) for t in cases]}
        if "added_tokens" in fields:
            tok.encode_special_tokens = True
            variants[name]["plain"] = [digest(tok.encode(t).ids) for t in cases]
    text = json.dumps({"texts": cases, "variants": variants, "written": written()}, ensure_ascii=False, separators=(",", ":"))
    with open("interchange.json", "w") as f:
        f.write(text.replace("]],", "]],\n").replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    main()
