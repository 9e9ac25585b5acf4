"""A type of a named namespace is defined in one file: of two with one name the linker takes either one's functions for both."""
import re
from collections import defaultdict

from house import Verdict, read, tree

# Comments, strings, directives; braces and semicolons; words.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*"""
                   r"|(?P<word>[{};]|[\w:]+|[^\s])", re.S | re.M)
TYPE = re.compile(r"(?:^|> )(?:struct|class|union|enum(?: class)?) (?:alignas \( .*? \) )?(\w+)(?: final)?(?: :.*)?$")
NOWHERE = "(anonymous)"


def types_of(text):
    """Types that are defined in namespaces with names, as ng::Extent."""
    scopes, words = [], []                 # a scope: its namespace's name; None: something else
    for word in (match["word"] for match in TOKEN.finditer(text)):
        if word is None:
            continue
        if word == "{":
            said = " ".join(words)
            found = TYPE.search(said)
            if words[:1] == ["namespace"]:
                scopes.append(words[1] if len(words) > 1 else NOWHERE)
            else:
                if found and scopes and None not in scopes and NOWHERE not in scopes:
                    yield "::".join([*scopes, found[1]])
                scopes.append(None)
        elif word == "}" and scopes:
            scopes.pop()
        if word in "{};":
            words = []
        else:
            words.append(word)


verdict, files = Verdict(), defaultdict(set)
for path in tree(".cc", ".cu", ".cuh", ".h"):
    for name in types_of(read(path)):
        files[name].add(str(path))
for name, places in sorted(files.items()):
    verdict.check(len(places) == 1, f"{name} is defined in {' and in '.join(sorted(places))}")
verdict.close()
