"""Writes the reference of libng from ng.h and the tables: a page of HTML and a man page for each function, an index."""
import argparse
import html
import re
from pathlib import Path

import api
import header

SUMMARIES = api.ROOT / "docs/summaries.txt"
STYLE = ("body{font:16px/1.5 sans-serif;max-width:52em;margin:2em auto;padding:0 1em;color:#222}pre,code{font-family:monospace;background:#f4f4f4}"
         "pre{padding:.8em;overflow-x:auto}td,th{text-align:left;vertical-align:top;padding:.15em 1em .15em 0}a{color:#0645ad}")
DOMAINS = {"any": "the operands' common type; bool becomes i32", "keep": "the operands' common type",
           "real": "the operands' common type; 8 and 16-bit integers become f32, wider ones f64",
           "bits": "the operands' common type, of integers and bool", "logic": "bool; a number counts as whether it is not zero"}
# What the parameters of reductions mean, which the header says once for all of them.
REDUCTION_FACTS = {"axes": "bits, such as NG_AXIS_0 | NG_AXIS_2; NG_ALL: every axis", "flags": "NG_KEEP leaves the axes as 1; without it they go away"}


class Header:
    """ng.h as text: comments, sections and declarations as they stand there."""

    def __init__(self):
        self.text = (api.ROOT / "include/ng.h").read_text()

    def place(self, function):
        return re.search(rf"^NG_API[^;()]*\b{function}\s*\(", self.text, re.M).start()

    def comments(self, function):
        """What the header says right before a declaration and behind it."""
        start = self.place(function)
        above = re.sub(r"(?:^(?:typedef|enum|#define) [^\n]*\n)+\Z", "", self.text[:start], flags=re.M)     # types that it brings along
        before = re.search(r"/\*((?:(?!\*/).)*)\*/\n\Z", above, re.S)
        said = [before[1]] if before and not re.search(r"----|\[words", before[1]) and self.text[above.rfind("\n", 0, before.start()) + 1:].startswith("/*") else []
        behind = re.match(r"[^;]*;[ \t]*/\*(.*?)\*/", self.text[start:], re.S)
        said += [behind[1]] if behind else []
        return ["\n".join(re.sub(r"^ \*  ?", "", line).rstrip() for line in part.strip().split("\n")) for part in said]

    def section(self, function):
        return re.findall(r"^/\* -+ (.*?) -+", self.text[:self.place(function)], re.M)[-1]

    def declaration(self, kind, name):
        """A struct's or enum's declaration with its comments."""
        pattern = {"struct": rf"^typedef struct {name} \{{.*?^\}} {name};", "enum": rf"^enum {name}_ \{{.*?\}};",
                   "typedef": rf"^typedef [^;{{]*\b{name}\b[^;{{]*;[^\n]*", "handle": rf"^typedef struct {name}\s+{name};[^\n]*"}[kind]
        return re.search(pattern, self.text, re.M | re.S)[0]

    def rules(self):
        return re.match(r"/\*(.*?)\*/", self.text, re.S)[0]


class Reference:
    def __init__(self):
        self.api, self.header = api.read_api(), Header()
        self.words = {"ng_" + w.name: w for w in self.api.words if w.kind != "NODE"}
        self.nodes = {"ng_" + w.name: w for w in self.api.words if w.kind == "NODE"}
        self.summaries, self.related, self.shared = {}, {}, {}     # shared: whose comment in the header is theirs too
        for line in SUMMARIES.read_text().split("\n"):
            if line and not line.startswith("#"):
                name, rest = line.split(maxsplit=1)
                self.summaries[name], _, related = (part.strip() for part in rest.partition("|"))
                self.related[name] = related.replace("=", "").split()
                self.shared.update({name: other[1:] for other in related.split() if other.startswith("=")})
        a = self.api
        self.kinds = {**{n: "typedef" for n in a.typedefs}, **{n: "enum" for n in a.enums}, **{n: "struct" for n in a.structs}, **{n: "handle" for n in a.handles}}
        self.pages = {f.name for f in a.functions} | set(self.kinds)

    def summary(self, name):
        if name in self.words:
            return header.summary(self.words[name]) + "."
        return self.summaries.get(name) or self.nodes[name].summary + "."

    def comments(self, name):
        if name in self.shared:
            return self.header.comments(self.shared[name])[:1]
        return [] if name in self.words else self.header.comments(name)

    def prototype(self, f):
        """A declaration, a parameter a line where there are many."""
        def declared(p):
            named = re.match(r"(.*?\(\*)(\).*)", p.type)
            array = re.match(r"(.*?) (\[\w+\])$", p.type)
            if named:
                return named[1] + p.name + named[2]
            base, tail = (array[1], array[2]) if array else (p.type, "")
            return base + ("" if base.endswith("*") else " ") + p.name + tail
        returns = f.returns + ("" if f.returns.endswith("*") else " ")
        head, params = f"{returns}{f.name}(", [declared(p) for p in f.params] or ["void"]
        line = head + ", ".join(params) + ");"
        return line if len(line) <= 96 else head + (",\n" + " " * len(head)).join(params) + ");"

    def facts(self, f):
        """(name, type, what is to be known of it) of each parameter."""
        found = []
        word = self.words.get(f.name)
        for p in f.params:
            said = [REDUCTION_FACTS[p.name]] if word and p.name in REDUCTION_FACTS else []
            said += [text for holds, text in ((p.optional, "may be NULL"), (p.count, f"an array of {p.count}"), (p.device, "in the device's memory")) if holds]
            found.append((p.name, p.type, "; ".join(said)))
        return found

    def returns(self, f):
        if f.returns == "ng_status":
            return "0 or a positive status on success; a negative one on failure" + (", which *err explains." if f.params[-1].name == "err" else ".")
        if f.returns == "ng_expr *":
            return "An expression, never NULL. A wrong call, or one that finds no memory, returns an invalid one; ng_eval or ng_compile reports the fault."
        return {"void": "Nothing."}.get(f.returns, "")

    def promise(self, f):
        if f.realtime:
            return "No lock, allocation, system call, wait or hook" + (", on the CPU with one thread and without the hooks parallel and trace." if f.name == "ng_prog_run" else ".")
        return "May wait for a device, a file, a compiler or a hook." if f.blocks else ""

    def row(self, name):
        """What the table says of an operation, as (label, text)."""
        w = self.words.get(name)
        if not w:
            return []
        said, names = [], header.NAMES.get(w.name, "xyz")

        def named(text):
            return re.sub(r"\b[xyz]\b", lambda letter: names["xyz".index(letter[0])], text)
        if w.kind == "MAP":
            said.append(("Computed in", DOMAINS[w.domain.lower()]))
            said.append(("Result", "bool" if w.result == "Bool" else "that type; of narrow floats f32"))
            said.append(("Error", "none: exact to the bit" if not w.ulp else f"at most {w.ulp:g} units in the last place"))
            said.append(("Derivative", named(w.derivative) or "none"))
            letters = [text for letter, text in (("d", "d is the cotangent of the result"), ("r", "r the result")) if re.search(rf"\b{letter}\b", w.derivative)]
            letters += ["semicolons part the operands"] if ";" in w.derivative else []
            said += [("where", ", ".join(letters))] if letters else []
        said.append(("NumPy", named(w.numpy)))
        call = ", ".join(names[:w.arity]) if w.kind == "MAP" else "x, axes"
        said.append(("In a text", f"{w.name}({call})" + ("" if w.kind in ("MAP", "NORM") else ", which keeps the axes")))
        return said

    def see(self, f):
        types = {t for p in [*f.params, api.Variable("", f.returns)] for t in re.findall(r"ng_\w+", p.type) if t in self.kinds}
        return list(dict.fromkeys([*self.related.get(f.name, []), *sorted(types - {"ng_error", "ng_expr", "ng_status"})]))


# -- HTML --------------------------------------------------------------------------------------------------------------

def linked(reference, text, here=""):
    """Escaped text in which names of ng.h lead to their pages."""
    def link(match):
        return f'<a href="{match[0]}.html">{match[0]}</a>' if match[0] in reference.pages and match[0] != here else match[0]
    return re.sub(r"\bng_\w+", link, html.escape(text))


def page(title, body, up="../reference.html"):
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style></head>\n'
            f'<body><p><a href="{up}">libng</a></p>\n<h1>{html.escape(title)}</h1>\n{body}</body></html>\n')


def table(rows):
    return "<table>\n" + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows) + "</table>\n"


def function_html(r, f):
    name = f.name
    body = f"<p>{linked(r, r.summary(name), name)}</p>\n<pre>{linked(r, r.prototype(f), name)}</pre>\n"
    body += table([f"<code>{p}</code>", f"<code>{linked(r, kind, name)}</code>", html.escape(said)] for p, kind, said in r.facts(f)) if f.params else ""
    body += "".join(f"<pre>{linked(r, text, name)}</pre>\n" for text in r.comments(name))
    body += table([label, f"<code>{linked(r, text, name)}</code>"] for label, text in r.row(name)) if r.row(name) else ""
    if r.returns(f):
        body += f"<p><b>Returns.</b> {linked(r, r.returns(f), name)}</p>\n"
    if r.promise(f):
        body += f"<p><b>{'Real-time.' if f.realtime else 'Waits.'}</b> {linked(r, r.promise(f), name)}</p>\n"
    see = r.see(f)
    return page(name, body + (f"<p>See also {', '.join(linked(r, s) for s in see)}.</p>\n" if see else ""))


def type_html(r, name):
    kinds = [kind for kind, names in (("handle", r.api.handles), ("typedef", r.api.typedefs), ("struct", r.api.structs), ("enum", r.api.enums)) if name in names]
    body = "".join(f"<pre>{linked(r, r.header.declaration(kind, name), name)}</pre>\n" for kind in kinds)
    users = [f.name for f in r.api.functions if any(re.search(rf"\b{name}\b", p.type) for p in [*f.params, api.Variable("", f.returns)])]
    if users and name not in ("ng_expr", "ng_error", "ng_status"):
        body += f"<p>Used by {', '.join(linked(r, user) for user in users)}.</p>\n"
    return page(name, body)


def index_html(r):
    sections = {}
    for f in r.api.functions:
        title = {"MAP": "element-wise operations", "FOLD": "reductions", "STAT": "reductions", "NORM": "reductions"}.get(
            r.words[f.name].kind, "") if f.name in r.words else r.header.section(f.name)
        sections.setdefault(title, []).append(f.name)
    version = f"{r.api.version >> 16}.{r.api.version >> 8 & 255}.{r.api.version & 255}"
    body = f"<p>Every function and type of <code>ng.h</code>, version {version}.</p>\n<h2>Rules that hold everywhere</h2>\n<pre>{html.escape(r.header.rules())}</pre>\n"
    body += "<h2>Types</h2>\n<p>" + ", ".join(f'<a href="reference/{name}.html">{name}</a>' for name in sorted(r.kinds)) + "</p>\n"
    for title, names in sections.items():
        rows = ([f'<a href="reference/{name}.html">{name}</a>', html.escape(r.summary(name))] for name in names)
        body += f"<h2>{html.escape(title[0].upper() + title[1:])}</h2>\n" + table(rows)
    return page("libng: reference", body, "reference.html")


# -- man pages ---------------------------------------------------------------------------------------------------------

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def function_man(r, f):
    summary = roff(r.summary(f.name).rstrip("."))
    parts = [f'.TH {f.name.upper()} 3 "" "libng" "libng"', ".SH NAME", f"{f.name} \\- {summary}", ".SH SYNOPSIS", ".nf", "#include <ng.h>", "",
             roff(r.prototype(f)), ".fi"]
    said = [fact for fact in r.facts(f) if fact[2]]
    texts = r.comments(f.name)
    if said or texts or r.row(f.name):
        parts.append(".SH DESCRIPTION")
        parts += [".PP\n.nf\n" + roff(text) + "\n.fi" for text in texts]
        parts += [f".TP\n.I {name}\n{roff(fact)}" for name, _, fact in said]
        parts += [f".TP\n{roff(label)}\n{roff(text)}" for label, text in r.row(f.name)]
    if r.returns(f):
        parts += [".SH RETURN VALUE", roff(r.returns(f))]
    if r.promise(f):
        parts += [".SH NOTES", roff(r.promise(f))]
    see = [name for name in r.see(f) if name not in r.kinds]
    if see:
        parts += [".SH SEE ALSO", ", ".join(f"{name}(3)" for name in see)]
    return "\n".join(parts) + "\n"


def write_all(folder):
    """All pages below a folder: reference.html, reference/*.html, man3/*.3."""
    r = Reference()
    for part in ("reference", "man3"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for f in r.api.functions:
        (folder / "reference" / f"{f.name}.html").write_text(function_html(r, f))
        (folder / "man3" / f"{f.name}.3").write_text(function_man(r, f))
    for name in r.kinds:
        (folder / "reference" / f"{name}.html").write_text(type_html(r, name))
    (folder / "reference.html").write_text(index_html(r))
    return r


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--depfile", type=Path, help="where to say which files were read, for ninja")
    chosen = parser.parse_args()
    write_all(chosen.folder)
    if chosen.depfile:
        read = [api.ROOT / "include/ng.h", api.ROOT / "jit/ops.def", api.ROOT / "jit/dtypes.def", SUMMARIES,
                *(Path(module).resolve() for module in (__file__, api.__file__, header.__file__))]
        chosen.depfile.write_text(f"{chosen.folder / 'reference.html'}: {' '.join(map(str, read))}\n")


if __name__ == "__main__":
    main()
