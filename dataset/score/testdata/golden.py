"""Writes golden.json: scores of generated texts. MTLD is lexicalrichness's; Flesch and the words are a second implementation of the
definitions in flesch.go and words.go, with regular expressions; the compression ratio is zlib's (another DEFLATE: near, not equal).

    python golden.py    # needs lexicalrichness 0.5.1
"""
import importlib.metadata, json, random, re, sys, types, zlib

for plots in ("matplotlib", "matplotlib.pyplot"):  # imported by lexicalrichness, not used here
    sys.modules.setdefault(plots, types.ModuleType(plots))
from lexicalrichness import LexicalRichness

WORD = re.compile(r"\w+(?:['’-]\w+)*")


def syllables(word):
    word = "".join(c if c.isascii() else "#" for c in word.lower())
    if not re.search("[a-z]", word):
        return 0
    n = len(re.findall("[aeiouy]+", word))
    if n > 1 and re.search("[^aeiouy]e$", word) and not re.search("(^|[^aeiouy])le$", word):
        n -= 1
    return max(n, 1)


def flesch(text):
    count = total = 0
    sentences = []
    for part in re.split(r"(?:(?<=[.!?…])[\"')\]}”’»]*(?=\s))|\n[ \t]*\n", text):
        words = [s for s in map(syllables, WORD.findall(part)) if s]
        count, total = count + len(words), total + sum(words)
        if words:
            sentences.append(words)
    return 206.835 - 1.015 * count / len(sentences) - 84.6 * total / count


rng = random.Random(5)
SYLLABLES = ["ta", "ble", "re", "con", "so", "le", "qu", "ea", "st", "ing", "er", "y", "an", "ou", "me", "é", "str", "ide"]


def text(vocabulary, words):
    names = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(vocabulary)]
    out, length = [], 0
    while length < words:
        n = rng.randint(3, 25)
        s = [rng.choice(names) for _ in range(n)]
        s[0] = s[0].capitalize()
        if rng.random() < 0.2:
            s.insert(1, rng.choice(["42", "3.14", "x-ray", "don't", "it’s", "e.g.", "(see"]))
        end = rng.choice([".", "!", "?", "...", ".”", "…", ".)"])
        out.append(" ".join(s) + end + rng.choice([" ", " ", "\n", "\n\n", "  "]))
        length += n
    return "".join(out)


cases = []
for vocabulary, words in [(3, 40), (20, 30), (50, 200), (200, 200), (1000, 300), (30, 1000), (400, 2000), (3000, 60), (2, 5)]:
    t = text(vocabulary, words)
    list_ = [w.lower() for w in WORD.findall(t)]
    lex = LexicalRichness(list_, preprocessor=None, tokenizer=None)
    raw = t.encode()
    cases.append({"text": t, "words": len(list_), "mtld": lex.mtld(threshold=0.72), "flesch": flesch(t), "zlib": (len(zlib.compress(raw, 6)) - 6) / len(raw)})
json.dump({"lexicalrichness": importlib.metadata.version("lexicalrichness"), "cases": cases}, open("golden.json", "w"), ensure_ascii=False, indent=1)
