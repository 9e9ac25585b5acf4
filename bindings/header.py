"""Writes the block of words in ng.h from ops.def: a line an operation. --check only says whether it is stale."""
import argparse
import re
import sys

import api

FIRST, LAST = "/* [words: ", "/* [end of words] */"
HEAD = """\
/* [words: this block is written from jit/ops.def; a test fails when it is stale]
 * Element-wise; operands broadcast as NumPy's. */
"""
REDUCTIONS = """\
/* Reductions over the axes whose bits are set; NG_KEEP leaves them as 1. argmin and argmax number what they choose from
 * in row-major order, also over several axes. */
typedef uint64_t ng_axes;
#define NG_ALL (~(ng_axes)0)
enum ng_axis_ { NG_AXIS_0 = 1, NG_AXIS_1 = 2, NG_AXIS_2 = 4, NG_AXIS_3 = 8, NG_AXIS_4 = 16 };
enum ng_reduce_flag_ { NG_KEEP = 1 };
"""
NORMS = "/* Of x's shape, each over the axes whose bits are set. */\n"
NAMES = {"where": "cxy"}   # what the operands are called, where it is not x, y, z


def parameters(word):
    """A word's operands and what else it takes, as C declares them."""
    if word.kind == "MAP":
        return ", ".join(f"ng_expr *{name}" for name in NAMES.get(word.name, "xyz")[:word.arity])
    return "ng_expr *x, ng_axes axes" + ("" if word.kind == "NORM" else ", uint32_t flags")


def summary(word):
    """What a row says of x, y and z, said of its operands' names."""
    names = dict(zip("xyz", NAMES.get(word.name, "xyz")))
    return re.sub(r"\b[xyz]\b", lambda letter: names[letter[0]], word.summary)


def section(words):
    """Aligned declarations, each with its summary."""
    width = max((len(word.name) for word in words), default=0)
    calls = [f"NG_API ng_expr *ng_{word.name:<{width}}({parameters(word)});" for word in words]
    column = max(map(len, calls), default=0) + 2
    return "".join(f"{call:<{column}}/* {summary(word)} */\n" for call, word in zip(calls, words))


def block(words):
    maps = [[w for w in words if w.kind == "MAP" and w.arity == arity] for arity in (1, 2, 3)]
    reductions = [w for w in words if w.kind in ("FOLD", "STAT")]
    norms = [w for w in words if w.kind == "NORM"]
    return HEAD + "\n".join(map(section, filter(None, maps))) + REDUCTIONS + section(reductions) + \
        (NORMS + section(norms) if norms else "") + LAST


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    path = api.ROOT / "include/ng.h"
    text = path.read_text()
    start, end = text.index(FIRST), text.index(LAST) + len(LAST)
    fresh = text[:start] + block(api.read_words()) + text[end:]
    if fresh == text:
        return 0
    if chosen.check:
        print("include/ng.h: the block of words is stale; run bindings/header.py")
        return 1
    path.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
