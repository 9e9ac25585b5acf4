"""Element-wise work and folds over shapes where kernels fall off cliffs, by several builds of libng in turns: short rows, few points, odd lengths, other orders of axes.

    python3 tests/bench/shape_turns.py LIBNG.so.. [--only TEXT..] [--open AXES..]

--open: of how many of x's axes, the first ones, programs do not know how long they are, nor all others that are as long; of several numbers each library has
a program for each, those of the first number first.

Needs PyTorch, as gemm_peers.py does, whose graphs and turns these are. For each case a line: GB/s of the last library, counting each element once, then
microseconds of each, the text, and types and extents of its operands, whose names are x, y and m.
"""
import argparse

import torch

import gemm_peers as peers
import ng

GRAPH_MS, POINTS = 2, 40_000_000
F16, F32, F64, I8, I64, BOOL = torch.float16, torch.float32, torch.float64, torch.int8, torch.int64, torch.bool
ROWS = (3, 5, 7, 9, 13, 17, 25, 33, 49, 65, 99, 129, 201, 255, 301, 401, 511, 601, 801, 1001, 2049)
COLUMNS = (2, 3, 4, 8, 10, 16, 24, 32, 33, 64, 128, 129, 256)
LONG, FEW = (32000, 50257), (1, 16, 64, 128, 512)
SIDES = (2, 3, 4, 6, 7, 8, 12, 16, 20)
NORM = "(x - mean(x, {0})) * rsqrt(var(x, {0}) + 1e-5)"


def floats(t):
    """Cases of one float type: text, type and extents of the result, of operands."""
    def points(text, shape, **operands):
        return (f"f16({text})" if t == F16 else text, (t, shape), {name: (t, s) if not isinstance(s[0], torch.dtype) else s for name, s in operands.items()})

    def fold(text, shape, **operands):
        return text, (F32, shape), {name: (t, s) for name, s in operands.items()}
    m = 8192 if t == F16 else 4096
    for n in ROWS:
        whole = (POINTS // n, n)
        yield points("softmax(x, 1)", whole, x=whole)
        yield points(NORM.format(1), whole, x=whole)
        yield fold("sum(x, 1)", (whole[0], 1), x=whole)
    for n in LONG:
        for rows in FEW:
            whole = (rows, n)
            yield points("softmax(x, 1)", whole, x=whole)
            yield points(NORM.format(1), whole, x=whole)
            yield fold("sum(x, 1)", (rows, 1), x=whole)
            yield "argmax(x, 1)", (I64, (rows, 1)), {"x": (t, whole)}
    for k in COLUMNS:
        whole = (k, POINTS // k // 8 * 8)
        yield points("softmax(x, 0)", whole, x=whole)
        yield fold("sum(x, 0)", (1, whole[1]), x=whole)
        yield fold("sum(x, 0)", (1, k), x=whole[::-1])
    for a, b in [(8192, 8192), (8191, 8193), (8190, 8196)] + [x for k in SIDES for x in ((k, POINTS // k), (POINTS // k, k))]:
        yield points("permute(x, [1, 0]) * 2 + 1", (a, b), x=(b, a))
    for a, b in ((8192, 8192), (8191, 8193), (8190, 8196)):
        yield points("permute(x, [1, 0]) + y", (a, b), x=(b, a), y=(a, b))
        yield points("permute(x, [1, 0]) * permute(z, [1, 0]) + y", (a, b), x=(b, a), z=(b, a), y=(a, b))
    for side in (512, 333):
        yield points("permute(x, [0, 3, 1, 2]) * 2", (64, 3, side, side), x=(64, side, side, 3))
        yield points("permute(x, [0, 2, 3, 1]) * 2", (64, side, side, 3), x=(64, 3, side, side))
    yield points("permute(x, [0, 2, 1]) + 1", (64, 1024, 1000), x=(64, 1000, 1024))
    yield points("permute(x, [2, 1, 0]) * 2", (300, 200, 500), x=(500, 200, 300))
    yield points("permute(x, [0, 2, 1, 3]) * 2", (32, 16, 1024, 64), x=(32, 1024, 16, 64))
    yield points("x[:, ::-1] + y", (m, 4096), x=(m, 4096), y=(m, 4096))
    yield points("x[:, 1:] - x[:, :-1]", (m, 4095), x=(m, 4096))
    yield points("x + y", (m, 4097), x=(m, 4097), y=(1, 4097))
    yield points("where(m, x, y)", (m, 4095), m=(BOOL, (m, 4095)), x=(m, 4095), y=(m, 4095))
    yield points("softmax(x + permute(y, [1, 0]), 1)", (m, 4096), x=(m, 4096), y=(4096, m))
    yield fold("sum(x * permute(y, [1, 0]), 1)", (m, 1), x=(m, 4096), y=(4096, m))
    yield fold("sum(x * y, 0)", (1, 200), x=(200000, 200), y=(200000, 1))
    yield fold("sum(x * y, 1)", (200000, 1), x=(200000, 200), y=(1, 200))
    for channels, side in ((256, 56), (255, 55)):
        planes, pixels = (64, channels, side, side), (64, side, side, channels)
        yield fold("sum(x, [0, 2, 3])", (1, channels, 1, 1), x=planes)
        yield fold("sum(x, [2, 3])", (64, channels, 1, 1), x=planes)
        yield fold("sum(x, [0, 1, 2])", (1, 1, 1, channels), x=pixels)
        yield points(NORM.format("[0, 2, 3]"), planes, x=planes)
        yield points(NORM.format("[1, 2]"), pixels, x=pixels)
    yield fold("sum(x, 1)", (20000, 1, 7), x=(20000, 300, 7))
    yield fold("sum(x, 1)", (64, 1, 512, 64), x=(64, 16, 512, 64))
    yield "argmax(x, 1)", (I64, (m, 1)), {"x": (t, (m, 4096))}


def cases():
    for t in (F16, F32):
        yield from floats(t)
    for n in ROWS:
        yield "max(x, 1)", (I8, (POINTS // n, 1)), {"x": (I8, (POINTS // n, n))}
    for a, b in ((8192, 8192), (8191, 8193), (8190, 8196)):
        yield "permute(x, [1, 0]) + y", (I8, (a, b)), {"x": (I8, (b, a)), "y": (I8, (a, b))}
        yield "permute(x, [1, 0]) + y", (F64, (a // 2, b)), {"x": (F64, (b, a // 2)), "y": (F64, (a // 2, b))}


class Program(peers.Ours):
    """A case as a program of libng over PyTorch's memory."""

    def __init__(self, library, text, operands, axes):
        self.library, lengths = library, list(dict.fromkeys(operands["x"].shape[:axes]))
        scope = library.c.ng_scope_create(library.context, 0)
        shapes = {name: (x.dtype, tuple(-1 - lengths.index(n) if n in lengths else n for n in x.shape)) for name, x in operands.items()}
        self.compile_text(scope, text, self.params_of(scope, shapes), lengths)


def random_tensor(dtype, shape):
    return torch.randint(0, 2, shape, device="cuda").bool() if dtype == BOOL else peers.random_matrix(dtype, *shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="+"), parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--open", nargs="*", type=int, default=[0])
    given = parser.parse_args()
    libraries = [ng.Library(path, "cuda") for path in given.libraries]
    for text, (dtype, extents), operands in cases():
        name = f"{text}  " + " ".join(f"{n} {peers.NAMES[t]}[{', '.join(map(str, s))}]" for n, (t, s) in operands.items())
        if not any(only in name for only in given.only):
            continue
        sets = [({n: random_tensor(*what) for n, what in operands.items()}, torch.empty(extents, dtype=dtype, device="cuda")) for _ in range(2)]
        programs = [Program(library, text, sets[0][0], axes) for axes in given.open for library in libraries]
        graphs = [peers.Graph([program.call_on(list(tensors.values()), out) for tensors, out in sets], GRAPH_MS) for program in programs]
        times, moved = peers.by_turns(graphs), sum(x.nbytes for x in sets[0][0].values()) + sets[0][1].nbytes
        print(f"{moved / times[-1] / 1e3:5.0f} GB/s", *(f"{us:8.1f}" for us in times), f"us  {name}", flush=True)
        for program in programs:
            program.release()
        del sets, graphs


if __name__ == "__main__":
    main()
