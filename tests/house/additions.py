"""Follows CONTRIBUTING.md literally on a copy of the tree: its operation is added and works, the places that it names exist.

By itself it builds one loop of the new operation. With --build it runs every command of the page, which builds the whole
library and takes minutes: additions.py --build [FOLDER]
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from house import FOLDERS, ROOT, Verdict, read

PAGE = "CONTRIBUTING.md"
# One loop of the operation, as the library compiles it for processors that it does not know.
PROGRAM = """\
// Prints what the new row's loop gives.
#include "lib/backend/cpu/row_loops.h"
#include <cstdio>

using namespace ng;

int main()
{{
    const float x[] = {{{numbers}}};
    float y[{count}];
    cpu::loop_of<cpu::Row_{name}, Dtype::f32, cpu::MODE_ALL>()(y, x, nullptr, nullptr, {count});
    for (const float v : y) std::printf("%.9g\\n", double(v));
    return find_op("{name}") == Op::{name} ? 0 : 1;
}}
"""
NUMBERS = [-2.5, -1.0, 0.0, 0.5, 3.0, 100.0]


def sections():
    return {part.split("\n")[0]: part for part in re.split(r"^## ", read(PAGE), flags=re.M)[1:]}


def fenced(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def apply(diff, tree):
    """Applies a unified diff by its lines alone, wherever they are: each hunk must fit at exactly one place."""
    path, hunks = re.search(r"^\+\+\+ b/(\S+)", diff, re.M)[1], re.split(r"^@@.*\n", diff, flags=re.M)[1:]
    text = (tree / path).read_text()
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] != skip) for skip in "+-")
        if text.count(old) != 1:
            return f"{path} has these lines {text.count(old)} times, should have them once:\n{old}"
        text = text.replace(old, new)
    (tree / path).write_text(text)
    return ""


def run(command, tree):
    # Debian's python3 has Debian's numpy; another one may stand before it on the path.
    path = "/usr/bin:" + os.environ.get("PATH", "")
    said = subprocess.run(command, cwd=tree, shell=isinstance(command, str), capture_output=True, text=True, env={**os.environ, "PATH": path})
    return said.returncode, said.stdout + said.stderr


def check_loop(verdict, word, tree):
    """The loop of the row against its NumPy column, and its derivative against difference quotients."""
    source, program = tree / "addition.cc", tree / "addition"
    source.write_text(PROGRAM.format(name=word.name, numbers=", ".join(f"{x}f" for x in NUMBERS), count=len(NUMBERS)))
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    status, said = run([*compiler, "-std=c++20", "-O1", "-ffp-contract=off", "-I.", "-Iinclude", "-DNG_ISA=generic", str(source), "jit/ops.cc", "-o", str(program)], tree)
    verdict.check(status == 0, f"the loop of {word.name} does not compile:\n{said}")
    if status:
        return
    status, said = run([str(program)], tree)
    verdict.check(status == 0, f"{word.name} is no word of texts")
    wanted = [eval(word.numpy, {"x": x}) for x in NUMBERS]
    for x, got, want in zip(NUMBERS, said.split(), wanted):
        verdict.check(abs(float(got) - want) <= 1e-6 * abs(want), f"{word.name}({x}) is {got}, its NumPy column says {want}")
    for x in NUMBERS:
        step = 1e-4 * max(1, abs(x))
        slope = (eval(word.numpy, {"x": x + step}) - eval(word.numpy, {"x": x - step})) / (2 * step)
        given = eval(word.derivative, {"x": x, "d": 1.0})
        verdict.check(abs(given - slope) <= 1e-4 * max(1, abs(slope)), f"the derivative of {word.name} at {x} is {given}, should be near {slope}")


def check_operation(verdict, tree, is_full):
    text = sections()["An operation"]
    for diff in fenced("diff", text):
        fault = apply(diff, tree)
        verdict.check(not fault, fault)
    commands = [line for block in fenced("sh", text) for line in block.splitlines()]
    quick = commands[:next(i for i, line in enumerate(commands) if line.startswith("meson"))]
    for command in commands if is_full else quick:
        status, said = run(command, tree)
        verdict.check(status == 0, f"{command}: {said}")
        if is_full:
            print(f"{command}\n{said}")
    names = re.findall(r"^\+MAP \((\w+)", text, re.M)
    verdict.check(len(names) == 1, f"{PAGE} adds {len(names)} operations, should add one")
    sys.path.insert(0, str(ROOT / "bindings"))
    import api
    records = api.read_api(tree)
    word = next(w for w in records.words if w.name == names[0])
    verdict.check(any(f.name == f"ng_{word.name}" for f in records.functions), f"ng_{word.name} is not declared in ng.h")
    check_loop(verdict, word, tree)


def check_places(verdict):
    for title in ("An element type", "A backend"):
        rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", sections()[title], re.M)
        verdict.check(len(rows) >= 10, f"{PAGE}, {title}: a table of places is missing")
        for path, name in rows:
            there = (ROOT / path).is_file() and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", read(path))
            verdict.check(there, f"{PAGE}, {title}: there is no {name} in {path}")


def main():
    is_full = "--build" in sys.argv[1:]
    folders = [argument for argument in sys.argv[1:] if argument != "--build"]
    verdict = Verdict()
    check_places(verdict)
    with tempfile.TemporaryDirectory(dir=folders[0] if folders else None) as folder:
        tree = Path(folder)
        wanted = FOLDERS if is_full else ["include", "jit", "lib", "bindings"]
        for name in wanted:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.iterdir():
            if is_full and path.is_file():
                shutil.copy2(path, tree)
        check_operation(verdict, tree, is_full)
    verdict.close()


if __name__ == "__main__":
    main()
