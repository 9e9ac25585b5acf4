"""Makes of text files one constant of C++: embed.py NAME OUTPUT DEPFILE INPUT.. defines ng::NAME, the texts in a row.

What they include of ours is to come before them: such lines are left out."""
import sys

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


def main():
    name, output, depfile, *inputs = sys.argv[1:]
    text = ""
    for path in inputs:
        with open(path, encoding="utf-8") as source:
            text += "".join(line for line in source if not line.startswith(('#pragma once', '#include "')))
    assert ')~~"' not in text, "the text ends its own literal"
    literals = "\n".join(f'R"~~({piece})~~"' for piece in pieces(text))
    with open(output, "w", encoding="utf-8") as target:
        target.write(f"namespace ng {{\nextern const char {name}[];\nconst char {name}[] = {literals};\n}}\n")
    with open(depfile, "w", encoding="utf-8") as target:
        target.write(f"{output}: {' '.join(inputs)}\n")


main()
