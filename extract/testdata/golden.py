"""Makes golden.json: generated pages and what jusText says about their paragraphs.

Made with justext 3.0.2 in its language-independent mode: no stop words, both bounds on their share 0. In place of its slip that
classes are not yet there when headings look ahead for good paragraphs, they are set before.
"""
import json, random
import justext
from justext import core

WORDS = ["".join(random.Random(i).choices("etaoinshrdlucmfwypvbgkqjxzäéß語", k=2 + i % 9)) for i in range(400)]
ENTITIES = ["&amp;", "&lt;x&gt;", "&eacute;t&eacute;", "&#8212;", "&#x4e2d;", "a&nbsp;b", "&quot;q&quot;", "R&D", "&hellip;"]


class Page:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def words(self, chars):
        s = ""
        while len(s) < chars:
            s += (" " if s else "") + (self.r.choice(ENTITIES) if self.r.random() < 0.03 else self.r.choice(WORDS))
        return s

    def inline(self, chars):
        """Text with inline elements, of which none is apart from the next by white space alone."""
        r, out, left = self.r, "", chars
        while left > 0:
            n = r.choice([10, 30, 80, 200])
            n = min(n, left)
            t = self.words(n)
            kind = r.random()
            if kind < 0.1:
                t = "<b>" + t + "</b>"
            elif kind < 0.2:
                t = "<em class='x'>" + t + " </em>"
            elif kind < 0.35:
                t = '<a href="/x?a=1&b=2">' + t + "</a>"
            elif kind < 0.4:
                t = "<a href=y><span>" + self.words(n // 2) + "</span>, " + self.words(n // 2) + "</a>"
            elif kind < 0.44:
                t += r.choice(["<br>", "<br/>", "<BR>\n"])
            elif kind < 0.46:
                t += "<br><br>"
            elif kind < 0.48:
                t += "<!-- " + self.words(20) + " -->"
            elif kind < 0.5:
                t += r.choice([" © 2020", " &copy; x", "<script>if (a<b) '<p>'</script>", "<style>p{}</style>", "<button>press <b>here</b></button>"])
            blank = r.choice([" ", "\n", "  \n\t "])
            out += (blank + r.choice(WORDS) + blank if out else "") + t + r.choice(["", "", "\n", ",", "."])
            left -= n
        return out

    def block(self, depth=0):
        r, kind = self.r, self.r.random()
        n = r.choice([3, 20, 60, 69, 70, 71, 100, 150, 199, 200, 201, 260, 500])
        if kind < 0.35:
            return "<p>" + self.inline(n) + r.choice(["</p>", "</p>\n", "\n"])
        if kind < 0.5:
            h = r.choice(["h1", "h2", "h3"])
            return f"<{h}>" + self.words(r.choice([10, 40, 80])) + f"</{h}>\n"
        if kind < 0.6:
            item = lambda: "<li>" + r.choice([self.words(n // 3), self.inline(n // 2), f'<a href="#">{self.words(12)}</a>']) + r.choice(["</li>\n", "\n"])
            return "<ul>\n" + "".join(item() for _ in range(r.randint(1, 5))) + "</ul>\n"
        if kind < 0.68:
            row = lambda: "<tr>" + "".join("<td>" + self.words(r.choice([5, 30, 90])) + r.choice(["</td>", ""]) for _ in range(3)) + r.choice(["</tr>", "\n"])
            return "<table>" + "".join(row() for _ in range(2)) + "</table>"
        if kind < 0.72:
            return "<pre>\n" + "\n".join("  " * r.randint(0, 3) + self.words(30) for _ in range(r.randint(1, 6))) + "\n</pre>"
        if kind < 0.76:
            return "<dl><dt>" + self.words(20) + "<dd>" + self.words(n) + "</dl>"
        if kind < 0.8:
            return "<blockquote>" + self.inline(n) + "</blockquote>"
        if kind < 0.84:
            return "<div><br></div><select><option>one<option>two</select><p>" + self.words(30) + "<textarea>typed</textarea></p>"
        if kind < 0.88:
            return "<P CLASS=a>" + self.words(n) + "<P>" + self.words(n // 2) + "<a href=z>" + self.words(n // 8)+ "</a></P>"
        if kind < 0.92:  # at the bounds
            k = r.choice([17, 20, 30])
            return "<p>" + ("word " * 50)[: r.choice([69, 70, 71, 199, 200, 201]) - 1] + ".<p><a href=x>" + "l" * k + "</a>" + "t" * (4 * k - r.randint(0, 1))
        if depth > 3:
            return "<div>" + self.inline(n) + "</div>"
        return "<div id='d'>" + "".join(self.block(depth + 1) for _ in range(r.randint(1, 5))) + "</div>\n"

    def html(self):
        body = "".join(self.block() for _ in range(self.r.randint(2, 14)))
        return f"<!DOCTYPE html>\n<html><head><title>{self.words(20)}</title><script>var x = '</p>';</script></head>\n<body>{body}</body></html>\n"


def main():
    pages = []
    for seed in range(50):
        html = Page(seed).html()
        ps = core.ParagraphMaker.make_paragraphs(core.preprocessor(core.html_to_dom(html)))
        core.classify_paragraphs(ps, frozenset(), stopwords_low=0, stopwords_high=0)
        for p in ps:
            p.class_type = p.cf_class
        core.revise_paragraph_classification(ps)
        said = [[p.text.replace("\n", " "), p.chars_count_in_links, int(p.heading), p.cf_class, p.class_type] for p in ps if p.text]
        pages.append({"html": html, "paragraphs": said})
    with open("golden.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(p, ensure_ascii=False) for p in pages) + "\n]\n")


main()
