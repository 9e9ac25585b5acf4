"""Files fit a sitting, 450 lines; functions fit a screen, 70 lines (kernels 120)."""
import ast
import re

from house import CODE, Verdict, read, tree

FILE_LINES, FUNCTION_LINES, KERNEL_LINES = 450, 70, 120
LONG_FILES = {"include/ng.h"}
# Users' programs come as their authors wrote them: each is one story in its main.
OTHERS = "tests/programs/"


def long_blocks(text, limit):
    """(line, count) of every brace on a line of its own whose block is longer: a function, as we write them."""
    lines, found = text.split("\n"), []
    for start, line in enumerate(lines):
        opened = re.fullmatch(r"(\s*)\{", line)
        if not opened:
            continue
        end = next((i for i in range(start + 1, len(lines)) if re.match(opened[1] + r"\}", lines[i])), len(lines))
        if end - start + 1 > limit:
            found.append((start, end - start + 1))
    return found


def long_functions(text, limit):
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    return [(n.lineno, n.end_lineno - n.lineno + 1) for n in nodes if n.end_lineno - n.lineno + 1 > limit]


verdict = Verdict()
for path in tree(*CODE):
    text, name = read(path), str(path)
    count = text.count("\n")
    verdict.check(count <= FILE_LINES or name in LONG_FILES, f"{path}: {count} lines, {FILE_LINES} is the limit")
    limit = KERNEL_LINES if path.suffix in (".cu", ".cuh") else FUNCTION_LINES
    faults = [] if name.startswith(OTHERS) else (long_functions if path.suffix == ".py" else long_blocks)(text, limit)
    verdict.check(not faults, "\n".join(f"{path}:{line}: a function of {size} lines, {limit} is the limit" for line, size in faults))
verdict.close()
