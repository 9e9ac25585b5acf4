"""Reads ng.h, ops.def and dtypes.def into plain records: every binding and generated file starts from these."""
import argparse
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ANNOTATIONS = r"\b(NG_OPT|NG_DEV|NG_RT|NG_BLOCKS)\b"


@dataclass
class Variable:
    """A parameter or a field: its C type without annotations, and what those say."""
    name: str
    type: str              # "const ng_shape *", "int64_t", "int64_t [32]", "void (*)(void *user)"
    optional: bool = False # NG_OPT
    device: bool = False   # NG_DEV
    count: str = ""        # NG_N(count): an array of so many


@dataclass
class Function:
    name: str
    returns: str
    params: list
    realtime: bool = False # NG_RT
    blocks: bool = False   # NG_BLOCKS


@dataclass
class Word:
    """A row of ops.def. Columns that its kind of row has not are empty."""
    kind: str              # NODE MAP FOLD STAT NORM
    name: str
    arity: int = 1
    domain: str = "Real"
    result: str = "Same"
    expression: str = ""
    start: str = ""
    derivative: str = ""
    ulp: float = 0
    numpy: str = ""
    summary: str = ""


@dataclass
class Dtype:
    name: str
    constant: str          # "NG_F32"
    kind: str              # Bool Int Uint Float
    bytes: int
    compute: str
    exponent: int
    mantissa: int


@dataclass
class Api:
    version: int = 0
    defines: dict = field(default_factory=dict)    # name -> its text
    typedefs: dict = field(default_factory=dict)   # name -> C type
    handles: list = field(default_factory=list)
    enums: dict = field(default_factory=dict)      # name -> {constant: value}
    structs: dict = field(default_factory=dict)    # name -> [Variable]
    functions: list = field(default_factory=list)
    words: list = field(default_factory=list)
    dtypes: list = field(default_factory=list)


def split_commas(text):
    """The parts of a list between its outermost commas; brackets and strings keep theirs."""
    parts, depth, quoted, escaped = [""], 0, False, False
    for char in text:
        if quoted:
            quoted, escaped = escaped or char != '"', not escaped and char == "\\"
        elif char == '"':
            quoted = True
        elif char == "," and depth == 0:
            parts.append("")
            continue
        else:
            depth += (char in "([{") - (char in ")]}")
        parts[-1] += char
    return [part.strip() for part in parts]


# -- tables ------------------------------------------------------------------------------------------------------------

def rows(path, kinds):
    """(kind, [column, ..]) of every row KIND(column, ..) that starts a line, indented or not."""
    text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.M)
    for match in re.finditer(rf"^[ \t]*({'|'.join(kinds)})\s*\(", text, re.M):
        at, depth, quoted = match.end(), 1, False
        while depth:
            char = text[at]
            if char == "\\" and quoted:
                at += 1
            elif char == '"':
                quoted = not quoted
            elif not quoted:
                depth += (char == "(") - (char == ")")
            at += 1
        yield match[1], split_commas(text[match.end():at - 1])


def unquoted(column):
    """A C string, or several side by side, as the text that it means."""
    return "".join(json.loads(f'"{part}"') for part in re.findall(r'"((?:[^"\\]|\\.)*)"', column))


def read_words(root=ROOT):
    words = []
    for kind, c in rows(root / "jit/ops.def", ["NODE", "MAP", "FOLD", "STAT", "NORM"]):
        if kind == "NODE":
            word = Word(kind, c[0], arity=0, summary=unquoted(c[1]))
        elif kind == "MAP":
            word = Word(kind, c[0], int(c[1]), c[2], c[3], " ".join(c[4].split()), "", unquoted(c[5]), float(c[6].rstrip("f")),
                        unquoted(c[7]), unquoted(c[8]))
        elif kind == "FOLD":
            word = Word(kind, c[0], domain=c[1], start=c[2], expression=c[3], numpy=unquoted(c[4]), summary=unquoted(c[5]))
        else:
            word = Word(kind, c[0], numpy=unquoted(c[1]), summary=unquoted(c[2]))
        words.append(word)
    return words


def read_dtypes(root=ROOT):
    return [Dtype(c[0].rstrip("_"), c[1], c[3], int(c[4]), c[5].rstrip("_"), int(c[6]), int(c[7]))
            for _, c in rows(root / "jit/dtypes.def", ["DTYPE"])]


# -- the header --------------------------------------------------------------------------------------------------------

def variable(text):
    """A declaration, "const ng_shape *d NG_OPT", as its record."""
    count = re.search(r"NG_N\((\w+)\)", text)
    plain = re.sub(r"\s*NG_N\(\w+\)", "", re.sub(ANNOTATIONS, "", text)).strip()
    pointer = re.match(r"(.*?\(\*)(\w+)(\).*)", plain)                  # a function's address
    if pointer:
        name, kind = pointer[2], pointer[1] + pointer[3]
    else:
        parts = re.match(r"(.*?)(\w+)\s*(\[\w+\])?$", plain)
        name, kind = parts[2], parts[1].strip() + (" " + parts[3] if parts[3] else "")
    return Variable(name, " ".join(kind.split()), "NG_OPT" in text, "NG_DEV" in text, count[1] if count else "")


def fields(body):
    """The fields of a struct, those that share a declaration apart."""
    found = []
    for line in (" ".join(part.split()) for part in body.split(";")):
        if not line:
            continue
        first, *more = split_commas(line)
        found.append(variable(first))
        base = re.match(r"((?:const\s+)?(?:struct\s+)?\w+)", first)[1]
        found += [variable(f"{base} {declarator}") for declarator in more]
    return found


def enum_values(body):
    values, last = {}, -1
    for item in filter(None, split_commas(body)):
        name, _, given = (part.strip() for part in item.partition("="))
        last = int(given, 0) if given else last + 1
        values[name] = last
    return values


def functions(text):
    found = []
    for match in re.finditer(r"\bNG_API\s+([^;()]*?)\b(ng_\w+)\s*\(([^;]*)\)\s*;", text):
        params = [variable(" ".join(p.split())) for p in split_commas(match[3]) if p != "void"]
        returns = " ".join(re.sub(ANNOTATIONS, "", match[1]).split())
        found.append(Function(match[2], returns, params, "NG_RT" in match[1], "NG_BLOCKS" in match[1]))
    return found


def read_api(root=ROOT):
    source = re.sub(r"/\*.*?\*/", " ", (root / "include/ng.h").read_text(), flags=re.S)
    api = Api(words=read_words(root), dtypes=read_dtypes(root))
    api.version = int(re.search(r"#define NG_VERSION\s+(\w+)", source)[1], 0)
    api.defines = {m[1]: m[2] for m in re.finditer(r"^#define (NG_\w+)[ \t]+(\S.*?)\s*$", source, re.M) if m[1] != "NG_API"}
    source = source[source.index('extern "C" {'):]
    text = "\n".join(line for line in source.split("\n") if not line.lstrip().startswith("#"))
    api.handles = re.findall(r"typedef struct (ng_\w+)\s+\1\s*;", text)
    api.enums = {m[1]: enum_values(m[2]) for m in re.finditer(r"enum (ng_\w+)_ \{(.*?)\};", text, re.S)}
    api.structs = {m[1]: fields(m[2]) for m in re.finditer(r"typedef struct (ng_\w+) \{(.*?)\} \1;", text, re.S)}
    for match in re.finditer(r"typedef ((?:\w|[ *])+?)\b(ng_\w+)\s*;|typedef ([^;{]*\(\*(ng_\w+)\)\([^;]*\));", text):
        name = match[2] or match[4]
        if name not in api.handles:
            api.typedefs[name] = variable(" ".join((match[3] or match[1] + name).split())).type
    api.functions = functions(text)
    return api


# -- what a build asks for ---------------------------------------------------------------------------------------------

def plain(record):
    """A record as a dict, without what is false or empty."""
    return asdict(record, dict_factory=lambda items: {key: value for key, value in items if value not in (False, "")})


def as_json(api):
    """What ng_api_json() returns. Only what users see: no expressions, no nodes."""
    public = plain(api)
    public["words"] = [{"name": w.name, "class": w.kind.lower(), "arity": w.arity, "domain": w.domain.lower(),
                        "result": w.result.lower(), "ulp": w.ulp, "numpy": w.numpy, "summary": w.summary}
                       for w in api.words if w.kind != "NODE"]
    return json.dumps(public, separators=(",", ":"))


def as_cc(api):
    """The same as C++: a string a line."""
    text = as_json(api)
    lines = [text[i:i + 100] for i in range(0, len(text), 100)]
    return ("// What ng_api_json returns; written by bindings/api.py.\n#include \"lib/api_json.h\"\n\nnamespace ng {\n\n"
            "const char api_json_text[] =\n" + "\n".join("    " + json.dumps(line) for line in lines) + ";\n\n}  // namespace ng\n")


def as_map(api):
    """A version script: what ng.h declares is seen, nothing else."""
    names = "".join(f"    {function.name};\n" for function in api.functions)
    return f"NG_1 {{\n  global:\n{names}  local:\n    *;\n}};\n"


def main():
    forms = {"json": as_json, "cc": as_cc, "map": as_map}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("form", choices=forms)
    parser.add_argument("out", type=Path)
    parser.add_argument("--depfile", type=Path, help="where to say which files were read, for ninja")
    chosen = parser.parse_args()
    chosen.out.write_text(forms[chosen.form](read_api()))
    if chosen.depfile:
        read = [ROOT / "include/ng.h", ROOT / "jit/ops.def", ROOT / "jit/dtypes.def", Path(__file__).resolve()]
        chosen.depfile.write_text(f"{chosen.out}: {' '.join(map(str, read))}\n")


if __name__ == "__main__":
    main()
