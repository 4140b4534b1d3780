"""Makes datatrove.json: generated documents and what datatrove's filters say about them.

Made with datatrove 0.10.1. Its word and sentence tokenizers are replaced by the definitions of words.go and
countSentences, because the rules, not the tokenizers, are what the verdicts are compared on.
"""
import json, random, re
import regex
from datatrove.data import Document
from datatrove.pipeline.filters import c4_filters, fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter
from datatrove.pipeline.formatters.pii import PIIFormatter
from datatrove.utils.text import TERMINAL_PUNCTUATION

WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]+(?:['’-][\p{L}\p{M}\p{N}_]+)*|[^\s\p{L}\p{M}\p{N}_]+")
END = regex.compile(r"[.?!][.?!\"')\]]*(?=\s|$)")


def words(text, language=None):
    return WORD.findall(text)


def sentences(line, language=None):
    pieces = END.split(line)
    n = len(pieces) - 1 + bool(pieces[-1].strip())
    return [""] * n


for m in (gopher_quality_filter, gopher_repetition_filter, fineweb_quality_filter):
    m.split_into_words = words
c4_filters.split_into_sentences = sentences

COMMON = "the be to of and that have with a in is it for on was as are this by from or an not they which one all were there can".split()
RARE = ["".join(random.Random(i).choices("etaoinshrdlucmfwypvbgkqjxz", k=2 + i % 9)) for i in range(600)]
ODD = ["café", "naïve", "straße", "well-known", "don't", "it’s", "3.14", "2024", "_x_", "#", "...", "…", "--", "[12]", "[edit]", "€", "日本語", "http://a.b/c"]


def document(r):
    kind = r.random()
    common, odd = r.choice([0.1, 0.4, 0.5]), r.choice([0, 0.02, 0.1, 0.3])
    pool = RARE[: r.choice([8, 40, 600])]
    lines, n = [], r.choice([2, 6, 12, 30])
    for _ in range(n):
        if lines and r.random() < r.choice([0, 0, 0.1, 0.4]):
            lines.append(r.choice(lines))
            continue
        k = r.choice([1, 2, 4, 8, 16, 30])
        line = " ".join(r.choice(ODD) if r.random() < odd else r.choice(COMMON if r.random() < common else pool) for _ in range(k))
        if r.random() < 0.15 and k > 3:
            line += " " + r.choice(["Uses Cookies here", "lorem ipsum", "needs JavaScript now", "terms of use", "a { b", "x" * 1001, "xcookie policy", "use cookiesx"])
        if kind < 0.2:
            line = r.choice(["- ", "• ", " -"]) + line
        line += r.choice([".", ".", "!", "?", "", ",", "...", "…", '."', ". And so. ", "。"])
        lines.append(line)
    text = lines[0]
    for line in lines[1:]:
        text += r.choice(["\n", "\n", "\n\n", "\n\n\n", "\n \n"]) + line
    return r.choice(["", "", "\n", "\n\n"]) + text + r.choice(["", "", "\n", "\n\n"])


def ratios(text):
    """The numbers themselves, from datatrove's own functions."""
    g = gopher_repetition_filter
    w, c = words(text), max(len(text), 1)
    dup = lambda pieces: g.find_duplicates(pieces)
    lines = text.split("\n")
    filled = [l for l in lines if l.strip()]
    out = {
        "fineweb.ended_lines": sum(l.endswith(tuple(TERMINAL_PUNCTUATION)) for l in filled) / len(filled),
        "fineweb.short_lines": sum(len(l) <= 30 for l in filled) / len(filled),
        "fineweb.duplicate_chars": dup(filled)[1] / len(text.replace("\n", "")),
        "fineweb.newline_ratio": text.count("\n") / len(w),
        "gopher_quality.hash_ratio": text.count("#") / len(w),
        "gopher_quality.ellipsis_ratio": (text.count("...") + text.count("…")) / len(w),
        "gopher_quality.alpha_words": sum(any(c.isalpha() for c in x) for x in w) / len(w),
        "gopher_repetition.duplicate_lines": dup(re.split(r"\n+", text))[0] / len(re.split(r"\n+", text)),
        "gopher_repetition.duplicate_paragraph_chars": dup(re.split(r"\n{2,}", text.strip()))[1] / c,
    }
    for n in (2, 3, 4):
        grams = g.get_n_grams(w, n)
        out[f"gopher_repetition.top_{n}_gram"] = g.find_top_duplicate(grams) / c if grams else 0
    for n in range(5, 11):
        out[f"gopher_repetition.duplicate_{n}_grams"] = g.find_all_duplicate(w, n) / c
    return out


def main():
    r = random.Random(1)
    filters = {
        "gopher_quality": gopher_quality_filter.GopherQualityFilter(),
        "gopher_repetition": gopher_repetition_filter.GopherRepetitionFilter(),
        "fineweb": fineweb_quality_filter.FineWebQualityFilter(),
        "c4": c4_filters.C4QualityFilter(),
        "c4_any_end": c4_filters.C4QualityFilter(filter_no_terminal_punct=False),
        "c4_paragraphs": c4_filters.C4ParagraphFilter(),
    }
    out = []
    for _ in range(120):
        text = document(r)
        case = {"text": text, "verdicts": {}, "ratios": ratios(text), "after": {}}
        for name, f in filters.items():
            d = Document(text=text, id="0")
            v = f.filter(d)
            case["verdicts"][name] = "" if v is True else v[1]
            if v is True and name.startswith("c4"):
                case["after"][name] = d.text
        out.append(case)
    pii = []
    for text in ["mail jo.e+x@mail.host.co.uk, or #a@b.org.", "a@b", "no at@ all @x.y", "é.x@y-z.de-", "at 8.8.8.8 and 10.0.0.1, 300.1.1.1", "x..y@z.com ip 172.32.0.1; 192.168.0.7",
                 "<first@one.net>second@two.net", "01.2.3.4 is none, 100.64.0.1 none, 223.5.5.5 is", "a_b@c.d.e.f", "-x@q.io 'quoted@q.io'"]:
        f = PIIFormatter(email_replacement="MAIL", ip_replacement="IP")
        pii.append({"text": text, "after": f.format(text)})
    with open("datatrove.json", "w") as f:
        json.dump({"documents": out, "pii": pii}, f, ensure_ascii=False, indent=0)
        f.write("\n")


main()
