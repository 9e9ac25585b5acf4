"""Makes of text files one constant of C++: embed.py NAME OUTPUT DEPFILE [--behind HEADER].. INPUT.. defines ng::NAME, the texts in a row.

What they include of ours comes before them, among these or, --behind, in a constant that its user puts ahead: such lines are left
out, and refused where it does not."""
import argparse
import re
import sys
from pathlib import PurePath

# A literal may be this long everywhere; neighbours become one.
PIECE_BYTES = 8000


def pieces(text):
    """The text as raw literals, cut at ends of lines."""
    piece = ""
    for line in text.splitlines(keepends=True):
        if len(piece) + len(line) > PIECE_BYTES:
            yield piece
            piece = ""
        piece += line
    yield piece


def without_includes(path, seen):
    """The file's text, whose includes of ours are all among the names seen."""
    with open(path, encoding="utf-8") as source:
        lines = source.readlines()
    for line in lines:
        included = re.match(r'#include "(.*)"', line)
        if included and PurePath(included[1]).name not in seen:
            sys.exit(f"{path}: {included[1]} does not come before it")
    return "".join(line for line in lines if not line.startswith(('#pragma once', '#include "')))


def main():
    words = argparse.ArgumentParser()
    words.add_argument("made", nargs=3)
    words.add_argument("--behind", action="append", default=[])
    words.add_argument("inputs", nargs="+")
    asked = words.parse_intermixed_args()
    (name, output, depfile), inputs = asked.made, asked.inputs
    seen, text = set(asked.behind), ""
    for path in inputs:
        text += without_includes(path, seen)
        seen.add(PurePath(path).name)
    assert ')~~"' not in text, "the text ends its own literal"
    literals = "\n".join(f'R"~~({piece})~~"' for piece in pieces(text))
    with open(output, "w", encoding="utf-8") as target:
        target.write(f"namespace ng {{\nextern const char {name}[];\nconst char {name}[] = {literals};\n}}\n")
    with open(depfile, "w", encoding="utf-8") as target:
        target.write(f"{output}: {' '.join(inputs)}\n")


main()
