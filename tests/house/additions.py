"""Follows CONTRIBUTING.md literally on copies of the tree: its operation, element type and backend are added, and work.

By itself it compiles what is new against the archives that it is given. With --build it runs every command of the page, which builds
the whole library and takes minutes: additions.py --build [FOLDER]
"""
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from house import FOLDERS, ROOT, Verdict, read
import api

PAGE, TITLES = "CONTRIBUTING.md", ("An operation", "An element type", "A backend")
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
# Every code of the type through loads, roundings and stores, then numbers by the CPU's rounding and by folding's.
TYPE_PROGRAM = """\
#include "jit/number.h"
#include "lib/backend/cpu/convert_loops.h"
#include "lib/backend/cpu/memory_loops.h"
#include <cstdio>

using namespace ng;

int main()
{{
    constexpr Dtype TYPE = Dtype::{name};
    uint8_t codes[256], back[256];
    float   values[256], rounded[256], numbers[] = {{{numbers}}};
    for (int i = 0; i < 256; i++) codes[i] = uint8_t(i);
    cpu::load<cpu::Codec<TYPE>>(values, codes, 1, 256);
    cpu::convert<TYPE, float>(rounded, values, 256);
    cpu::store<cpu::Codec<TYPE>>(back, 1, rounded, 256);
    for (int i = 0; i < 256; i++) std::printf("%.9g %d\\n", double(values[i]), back[i]);
    cpu::convert<TYPE, float>(rounded, numbers, {count});
    for (int i = 0; i < {count}; i++) std::printf("%.9g %.9g\\n", double(rounded[i]), round_to(TYPE, double(numbers[i])));
    std::printf("%s %lld\\n", name_of(TYPE), (long long)least_bits(TYPE));
    return 0;
}}
"""


def sections():
    return {part.split("\n")[0]: part for part in re.split(r"^## ", read(PAGE), flags=re.M)[1:]}


def fenced(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def apply(diffs, tree):
    """Applies unified diffs by their lines alone, wherever they are: each hunk must fit at exactly one place."""
    for diff in re.split(r"^(?=--- a/)", diffs, flags=re.M)[1:]:
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


def follow(verdict, title, tree):
    """What a section says is done in the tree: its new files are written, its diffs applied."""
    text = sections()[title]
    for path, body in re.findall(r"^\*\*([\w/.]+)\*\*\n\n```\w+\n(.*?)^```", text, re.M | re.S):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(body)
    for diffs in fenced("diff", text):
        fault = apply(diffs, tree)
        verdict.check(not fault, fault)


def commands_of(title):
    return [line for block in fenced("sh", sections()[title]) for line in block.splitlines()]


def run(command, tree):
    # Debian's python3 has Debian's numpy; another one may stand before it on the path.
    path = "/usr/bin:" + os.environ.get("PATH", "")
    said = subprocess.run(command, cwd=tree, shell=isinstance(command, str), capture_output=True, text=True, env={**os.environ, "PATH": path})
    return said.returncode, said.stdout + said.stderr


def compiled(verdict, command, what, tree):
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    status, said = run([*compiler, "-std=c++20", "-O1", "-ffp-contract=off", "-I.", "-Iinclude", "-DNG_ISA=generic", *command], tree)
    verdict.check(status == 0, f"{what} does not compile:\n{said}")
    return status == 0


def check_loop(verdict, word, tree):
    """The loop of the row against its NumPy column, and its derivative against difference quotients."""
    source, program = tree / "addition.cc", tree / "addition"
    source.write_text(PROGRAM.format(name=word.name, numbers=", ".join(f"{x}f" for x in NUMBERS), count=len(NUMBERS)))
    if not compiled(verdict, [str(source), "jit/ops.cc", "-o", str(program)], f"the loop of {word.name}", tree):
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


def check_operation(verdict, tree):
    for command in commands_of("An operation")[:1]:                # the words in ng.h; the rest builds everything
        status, said = run(command, tree)
        verdict.check(status == 0, f"{command}: {said}")
    names = re.findall(r"^\+MAP \((\w+)", sections()["An operation"], re.M)
    verdict.check(len(names) == 1, f"{PAGE} adds {len(names)} operations, should add one")
    records = api.read_api(tree)
    word = next(w for w in records.words if w.name == names[0])
    verdict.check(any(f.name == f"ng_{word.name}" for f in records.functions), f"ng_{word.name} is not declared in ng.h")
    check_loop(verdict, word, tree)


def value_of(code, dtype):
    """What a code of eight bits stands for where the last exponent is that of infinity and NaN."""
    exponent, mantissa = code >> dtype.mantissa & (1 << dtype.exponent) - 1, code & (1 << dtype.mantissa) - 1
    bias, part = (1 << dtype.exponent - 1) - 1, mantissa / (1 << dtype.mantissa)
    if exponent == (1 << dtype.exponent) - 1:
        value = math.nan if mantissa else math.inf
    else:
        value = math.ldexp(1 + part, exponent - bias) if exponent else math.ldexp(part, 1 - bias)
    return math.copysign(value, -1 if code >> 7 else 1)


def check_type(verdict, tree):
    """Its codes against their definition, and numbers against the nearest of its values, the even one of two."""
    names = re.findall(r"^\+DTYPE\((\w+)", sections()["An element type"], re.M)
    verdict.check(len(names) == 1, f"{PAGE} adds {len(names)} types, should add one")
    dtype = next(d for d in api.read_dtypes(tree) if d.name == names[0])
    numbers = [x * 1.03125 ** i for x in (1e-3, -0.0625, 0.7) for i in range(0, 160, 3)] + [math.inf, -math.inf]
    literals = ", ".join("INFINITY" if x == math.inf else "-INFINITY" if x == -math.inf else f"{x!r}f" for x in numbers)
    (tree / "addition.cc").write_text("#include <cmath>\n" + TYPE_PROGRAM.format(name=dtype.name, numbers=literals, count=len(numbers)))
    if not compiled(verdict, ["addition.cc", "jit/number.cc", "jit/dtype.cc", "jit/error.cc", "-o", "addition"], f"what converts {dtype.name}", tree):
        return
    lines = [line.split() for line in run([str(tree / "addition")], tree)[1].splitlines()]
    values = [value_of(code, dtype) for code in range(256)]
    finite = [code for code in range(128) if math.isfinite(values[code])]
    most = max(values[code] for code in finite)                    # where numbers that are too large end
    for code, (value, back) in enumerate(lines[:256]):
        is_same = float(value) == values[code] or float(value) != float(value) and math.isnan(values[code])
        verdict.check(is_same and (not math.isfinite(values[code]) or int(back) == code), f"{dtype.name} {code}: {value}, stored again {back}, should be {values[code]}")
    for x, (rounded, folded) in zip(numbers, lines[256:-1]):
        nearest = min(finite, key=lambda code: (abs(values[code] - min(abs(x), most)), code & 1))
        want = math.copysign(values[nearest], x)
        verdict.check(float(rounded) == want == float(folded), f"{x} as {dtype.name} is {rounded}, by folding {folded}, should be {want}")
    least = 1 << 7 | (1 << dtype.exponent) - 1 << dtype.mantissa
    verdict.check(lines[-1] == [dtype.name, str(least)], f"{dtype.name} says {lines[-1]}, its least is {least}")


def check_backend(verdict, tree, archives):
    """Its program with the new backend and list of backends, and all else from the archives."""
    text = sections()["A backend"]
    (tree / "program.c").write_text(fenced("c", text)[0])
    sources = re.findall(r"^\*\*(lib/[\w/]+\.cc)\*\*$", text, re.M)
    objects = [f"{Path(path).parent.name}.o" for path in sources] + ["device.o", "program.o"]
    for source, target in zip(sources + ["lib/device.cc"], objects):
        compiled(verdict, ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", source, "-o", target], source, tree)
    status, said = run([*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-Iinclude", "-c", "program.c", "-o", "program.o"], tree)
    verdict.check(status == 0, f"its program does not compile:\n{said}")
    if not archives:
        return
    if compiled(verdict, ["-o", "program", *objects, "-Wl,--start-group", *archives, "-Wl,--end-group", "-pthread", "-lm", "-ldl"], "the program with the backend", tree):
        check_printed(verdict, run([str(tree / "program")], tree))


def check_printed(verdict, outcome):
    status, said = outcome
    wanted = fenced("text", sections()["A backend"])[0]
    verdict.check(status == 0 and said == wanted, f"the backend's program ends with {status} and prints\n{said}and {PAGE} says\n{wanted}")


def check_places(verdict):
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", sections()["A backend"], re.M)
    verdict.check(len(rows) >= 9, f"{PAGE}, A backend: a table of places is missing")
    for path, name in rows:
        there = (ROOT / path).is_file() and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", read(path))
        verdict.check(there, f"{PAGE}: there is no {name} in {path}")


def copied(folder, is_whole):
    tree = Path(folder)
    for name in FOLDERS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if is_whole and path.is_file():
            shutil.copy2(path, tree)
    return tree


def build_all(verdict, tree):
    """All three in one tree, and every command of the page in its order."""
    for title in TITLES:
        follow(verdict, title, tree)
    for command in [command for title in TITLES for command in commands_of(title)]:
        status, said = run(command, tree)
        verdict.check(status == 0, f"{command}: {said}")
        print(f"{command}\n{said[-2000:]}", flush=True)
    (tree / "program.c").write_text(fenced("c", sections()["A backend"])[0])
    status, said = run(["cc", "-std=c11", "-Iinclude", "program.c", "build/lib/libng.so.1", f"-Wl,-rpath,{tree}/build/lib", "-o", "program"], tree)
    verdict.check(status == 0, f"the backend's program does not compile:\n{said}")
    check_printed(verdict, run([str(tree / "program")], tree))


def main():
    arguments = sys.argv[1:]
    verdict = Verdict()
    check_places(verdict)
    if "--build" in arguments:
        folders = [argument for argument in arguments if argument != "--build"]
        with tempfile.TemporaryDirectory(dir=folders[0] if folders else None) as folder:
            build_all(verdict, copied(folder, True))
    for title in TITLES if "--build" not in arguments else []:
        with tempfile.TemporaryDirectory() as folder:
            tree = copied(folder, False)
            follow(verdict, title, tree)
            if title == "An operation":
                check_operation(verdict, tree)
            elif title == "An element type":
                check_type(verdict, tree)
            else:
                check_backend(verdict, tree, arguments)
    verdict.close()


if __name__ == "__main__":
    main()
