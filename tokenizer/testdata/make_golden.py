#!/usr/bin/env python3
"""Makes the golden files in this directory with the `tokenizers` and `tiktoken` libraries (0.23.3 and 0.14.0).

corpus.txt            the text that tokenizers are trained on
hf_PATTERN.json       trained by the tokenizers library on corpus.txt: 600 tokens, <|endoftext|> among them
golden.json           texts, and the ids that each library gives them under each tokenizer
ranks.tiktoken        the tokens of hf_cl100k.json as a rank file

Run it here: python3 make_golden.py
"""
import base64
import json
import random

import tiktoken
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
TIKTOKEN_CL100K = CL100K.replace("{1,3}", "{1,3}+")
DIGITS = r"\p{N}| ?[^\p{N}\s]+|\s"  # a pattern without a splitter of its own

WORDS = """the of and to in a is that it for was on as with be by at from this have are not which or an but were they
their has one would all we can more if when will there about out up who them some could into other than only new its time
over such most even after also made many must before through years where much your way well down should because long each
just state people those too mr little world still nation hand old life tell write become here show house both between need
mean call develop under last right move thing general school never same another begin while number part turn real leave
might want point form off child few small since against ask late home interest large person end open public follow during
return func error string package import nil range struct interface map chan defer select switch const type var break""".split()

ODD = ["it's", "they'll", "DON'T", "we've", "I'm", "he'd", "'S", "été", "naïve", "straße", "Жук", "говорит", "中文", "日本語の",
       "한국어", "עברית", "العربية", "ไทย", "😀", "👩‍🚀", "e\u0301", "ﬁn", "x_1", "a.b()", "!=", "==", "//", "/*", "*/", "{}", "[]",
       "--", "...", "“quoted”", "3.14159", "1234567", "٣٤", "²", "½", "Ⅷ", "\u00a0", "\u3000", "\u2028", "\t", "\t\t", "\r\n", "\n\n",
       "   ", "    ", " \n ", "\x00", "\x7f", "aaaa", "ababab", "hahaha", "<b>", "&amp;", '"json"', "\\n", "#", "@", "$5", "100%"]


def corpus(rng):
    lines = []
    for _ in range(380):
        line = [rng.choice(WORDS) if rng.random() < 0.85 else rng.choice(ODD) for _ in range(rng.randint(2, 12))]
        if rng.random() < 0.3:
            line[0] = "\t" * rng.randint(1, 3) + line[0]
        lines.append(" ".join(line).capitalize() if rng.random() < 0.5 else " ".join(line))
    return "\n".join(lines) + "\n"


def texts(rng):
    out = ["", " ", "  ", "\n", "\n  ", "x\n \n  ", "Hello world", " Hello  world ", "a'ſx", "a'Sb 'Ll", "it's they'LL", "''s", " 's",
           "<|endoftext|>", "a<|endoftext|>b", "<|endoftext|", "<|endoftext|><|endoftext|> x", " <|endoftext|>\n", "<|end<|endoftext|>",
           "1", "12", "123", "1234", "12345678 90", "a1b22c333d4444", "(a", "((a", " (a", "\t(a", "\n(a", "x(\n\n  y", "x\n(\n  \n z", "a\r\n\r\nb",
           "\ta", "\t\ta", " \ta", "\t a", "a \n", "a\n ", "a  b", "a   ", "\u00a0a", "a\u3000\u3000b", "a\u2028b", "\x85x", "a\x00b",
           "a" * 100, " " * 100, "-" * 70 + "x", "\n" * 80 + "y", "ab" * 60, "7" * 50, "Ж" * 40, "😀" * 10]
    pool = WORDS[:60] + ODD * 3 + [" ", "  ", "\n", ".", ",", "(", ")", "'"] * 6 + ["<|endoftext|>"] * 2
    for _ in range(120):
        sep = rng.choice(["", " ", ""])
        out.append(sep.join(rng.choice(pool) for _ in range(rng.randint(1, 18))))
    return out


def train(pattern, special=("<|endoftext|>",)):
    tok = Tokenizer(models.BPE())
    if pattern is None:
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    else:
        tok.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator([open("corpus.txt", newline="").read()], trainer)
    return tok


def byte_values():
    """Maps each character of the byte-level alphabet to its byte."""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    rest = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(rest)}


def write(name, data):
    with open(name, "w", newline="") as f:
        f.write(data)


def main():
    rng = random.Random(20)
    write("corpus.txt", corpus(rng))
    cases = texts(rng)
    golden = {"texts": cases, "ids": {}}

    def record(name, tok):
        golden["ids"][name] = [tok.encode(t, add_special_tokens=False).ids for t in cases]

    for name, pattern in {"gpt2": None, "cl100k": CL100K, "llama3": LLAMA3, "digits": DIGITS}.items():
        tok = train(pattern)
        write(f"hf_{name}.json", tok.to_str())
        record(name, tok)

    # ignore_merges matters when a token cannot be reached by merges: every third merge is gone.
    doc = json.load(open("hf_llama3.json"))
    doc["model"]["merges"] = [m for i, m in enumerate(doc["model"]["merges"]) if i % 3]
    for ignore in (False, True):
        doc["model"]["ignore_merges"] = ignore
        record("fewer_merges_ignored" if ignore else "fewer_merges", Tokenizer.from_str(json.dumps(doc)))

    value = byte_values()
    vocab = json.load(open("hf_cl100k.json"))["model"]["vocab"]
    ranks = {bytes(value[c] for c in token): id - 1 for token, id in vocab.items() if token != "<|endoftext|>"}
    write("ranks.tiktoken", "".join(f"{base64.b64encode(t).decode()} {r}\n" for t, r in sorted(ranks.items(), key=lambda x: x[1])))
    enc = tiktoken.Encoding("golden", pat_str=TIKTOKEN_CL100K, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 700})
    golden["ids"]["tiktoken"] = [enc.encode(t, allowed_special="all") for t in cases]
    golden["ids"]["tiktoken_ordinary"] = [enc.encode_ordinary(t) for t in cases]

    text = json.dumps(golden, ensure_ascii=False, separators=(",", ":"))
    write("golden.json", text.replace("],[", "],\n[") + "\n")


main()
