"""Includes run down only: lib to jit to ng.h, lib to kernels; no circles, no backend in another's rooms."""
import re
from pathlib import Path

from house import ROOT, Verdict, read, tree

# What each floor may include. Examples and users' programs see the face alone, as users do.
BELOW = {"include": [], "kernels": ["kernels"], "jit": ["jit"], "lib": ["lib", "jit", "kernels"], "examples": ["examples"],
         "tests": ["tests", "lib", "jit", "kernels"]}
# jit/ thinks: no device, file, clock or thread. lib/ prints nothing.
SYSTEM = {"jit": {"chrono", "condition_variable", "dlfcn.h", "fcntl.h", "filesystem", "fstream", "future", "iostream", "mutex", "thread",
                  "time.h", "ctime", "unistd.h", "cuda.h"},
          "lib": {"iostream", "cuda.h", "cuda_runtime.h"}}
# Folders that see less than their floor.
NARROW = {"tests/programs": ["tests/programs"], "tests/jit": ["tests", "jit"]}


def faults_of(path, target):
    """What is wrong with path including "target"."""
    here = path.parts[0]
    full = next((p for p in (Path(target), path.parent / target) if (ROOT / p).is_file()), None)
    if full is None:
        return f"includes {target}, which is not in the tree"
    if here not in ("examples", "tests") and str(full) != target:
        return f'includes "{target}": write "{full}", the path from the root'
    there = full.parts[0]
    allowed = next((floors for folder, floors in NARROW.items() if str(path).startswith(folder + "/")), BELOW[here])
    if there != "include" and not any(str(full).startswith(floor + "/") for floor in allowed):
        return f"includes {full}: {here}/ may not see {there}/"
    if full.suffix in (".cc", ".c"):
        return f"includes {full}: nobody includes a source"
    backends = [p.parts[2] for p in (path, full) if p.parts[:2] == ("lib", "backend") and len(p.parts) > 3]
    if len(backends) == 2 and backends[0] != backends[1]:
        return f"includes {full}: a backend does not see another"
    return None


def circles(edges):
    """The headers that reach themselves."""
    state, found = {}, []

    def visit(header, trail):
        state[header] = "open"
        for below in sorted(edges.get(header, ())):
            if state.get(below) == "open":
                found.append(" -> ".join(trail[trail.index(below):] + [below]))
            elif below not in state:
                visit(below, trail + [below])
        state[header] = "done"

    for header in sorted(edges):
        if header not in state:
            visit(header, [header])
    return found


verdict, edges = Verdict(), {}
for path in tree(".c", ".cc", ".cu", ".cuh", ".h", under=BELOW):
    text, faults = read(path), []
    for target in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
        faults.append(faults_of(path, target))
        if path.suffix in (".h", ".cuh"):
            edges.setdefault(str(path), set()).add(target)
    for target in re.findall(r"^\s*#\s*include\s+<([^>]+)>", text, re.M):
        if target in SYSTEM.get(path.parts[0], ()) and "backend" not in path.parts:
            faults.append(f"includes <{target}>: {path.parts[0]}/ has no business with it")
    faults = [fault for fault in faults if fault]
    verdict.check(not faults, "\n".join(f"{path} {fault}" for fault in faults))
rings = circles(edges)
verdict.check(not rings, "\n".join("a circle: " + ring for ring in rings))
verdict.close()
