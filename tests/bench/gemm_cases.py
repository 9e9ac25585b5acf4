"""Which products gemm_peers.py sets beside cuBLASLt's, of ngtool's list, of any list of shapes or of its own, and what its times come to."""
import csv
import math
import re
from collections import defaultdict
from typing import NamedTuple

CASE = re.compile(r"(\w+) (?:b(\d+) )?m(\d+) n(\d+) k(\d+) ([nt])([nt])")
LEAST = 0.97            # of cuBLASLt's best by ours, which no case should be below


class Case(NamedTuple):
    name: str
    kind: str
    extents: tuple      # m, n, k
    ways: str           # of a and b: t where it is stored transposed
    batch: int = 1      # products of these extents, one behind the other


def named(name):
    """The case of this name: TYPE mM nN kK AB, or TYPE bB mM nN kK AB of a batch; None of others."""
    parts = CASE.fullmatch(name)
    return Case(name, parts[1], tuple(map(int, parts.group(3, 4, 5))), parts[6] + parts[7], int(parts[2] or 1)) if parts else None


def squares(_kinds):
    """Those that ngtool's list lacks: bf16 all ways that it may lie, and the other fp8, which cuBLASLt multiplies in one way alone."""
    names = [f"bf16 m{n} n{n} k{n} {ways}" for n in (4096, 8192) for ways in ("nn", "nt", "tn", "tt")]
    return names + [f"e5m2 m{n} n{n} k{n} nt" for n in (1024, 2048, 4096, 8192)]


def by_weights(kinds, sizes, rows):
    """So many rows by weights of so many columns and so deep, n x k as they mostly lie; of 16 bits k x n, too."""
    return [f"{kind} m{m} n{n} k{k} {ways}" for kind in kinds for ways in (("nt", "nn") if kind in ("fp16", "bf16") else ("nt",)) for n, k in sizes for m in rows]


def few_rows(kinds):
    """As many rows as there are tokens, by the weights that language models have."""
    sizes = ((1024, 1024), (1024, 4096), (2048, 2048), (4096, 4096), (5120, 5120), (6144, 4096), (11008, 4096), (4096, 11008), (14336, 4096), (4096, 14336), (8192, 8192), (28672, 8192), (8192, 28672))
    return by_weights(kinds, sizes, (1, 8, 32, 64))


def any_rows(kinds):
    """More of them than fit a tile, as many as a text happens to have."""
    return by_weights(kinds, ((4096, 4096), (11008, 4096), (4096, 11008), (8192, 8192)), (137, 200, 300, 450, 600, 777, 1001, 1400, 2000, 3001))


def batches(kinds):
    """Scores and sums of attention, whole, of windows, of images and of one token; experts; small ones by the hundred and the thousand."""
    attention = [(128, 1024, 64), (64, 2048, 128), (512, 128, 64), (2048, 49, 32), (768, 197, 64)]
    names = [f"b{b} m{n} n{n} k{k} nt" for b, n, k in attention] + [f"b{b} m{n} n{k} k{n} nn" for b, n, k in attention]
    names += [f"b{b} m{m} n2048 k128 nt" for b, m in ((512, 1), (128, 8))] + [f"b{b} m{m} n128 k2048 nn" for b, m in ((512, 1), (128, 8))]
    names += [f"b8 m{m} n4096 k1024 nt" for m in (16, 64, 300)]
    names += [f"b{b} m{n} n{n} k{n} nn" for b, n in ((10000, 8), (10000, 16), (4096, 32), (1000, 33), (4096, 64), (1024, 100), (1024, 128), (256, 256), (64, 512), (8, 1024))]
    return [f"{kind} {name}" for kind in kinds for name in names if kind not in ("e4m3", "e5m2") or name.endswith("nt")]


OWN = {"squares": squares, "few": few_rows, "any": any_rows, "batches": batches}


def read_names(path, kinds):
    """Of a file that ngtool bench --csv wrote, or of a list of shapes with columns m, n, k and, for each type of kinds, transA and transB (N or T)."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = [{key.strip().lower(): (value or "").strip() for key, value in row.items() if key} for row in csv.DictReader(file)]
    if not rows or "case" in rows[0]:
        return [row["case"] for row in rows if row["section"] == "gemm"]
    if missing := {"m", "n", "k"} - rows[0].keys():
        raise SystemExit(f"{path} has neither a column 'case' nor these of shapes: {', '.join(sorted(missing))}")
    return [f"{kind} m{row['m']} n{row['n']} k{row['k']} {row.get('transa', 'n').lower()}{row.get('transb', 'n').lower()}" for kind in kinds for row in rows]


def read_cases(path, kinds=("fp16",), only="", part="0/1"):
    """Each case once; of those the K-th of N parts, so that calls of a few minutes share them."""
    index, parts = map(int, part.split("/"))
    names = OWN[path](kinds) if path in OWN else read_names(path, kinds)
    cases = [named(name) for name in dict.fromkeys(names) if only in name]
    return [case for case in cases if case][index::parts]


def summary(times):
    """Lines about {Case: {peer: microseconds}}: for each type the geometric mean, the worst and all that are below LEAST."""
    ratios = defaultdict(dict)
    for case, found in times.items():
        if "ng" in found:
            ratios[case.kind][case.name] = found["cublasLt best"] / found["ng"]
    for kind, of_it in ratios.items():
        mean, worst = math.exp(sum(map(math.log, of_it.values())) / len(of_it)), min(of_it, key=of_it.get)
        low = sorted((ratio, name) for name, ratio in of_it.items() if ratio < LEAST)
        yield f"{kind}: {len(of_it)} cases, cuBLASLt's best by ours: geometric mean {mean:.3f}, worst {of_it[worst]:.3f} ({worst}); {len(low)} below {LEAST}"
        for ratio, name in low:
            yield f"    {ratio:.3f}  {name}"
