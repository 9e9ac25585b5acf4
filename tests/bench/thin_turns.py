"""Products of few rows or little depth with what follows or precedes them, by several builds of libng in turns: whether one of them is slower.

    python3 tests/bench/thin_turns.py LIBNG.so.. [--only TEXT..] [--seconds N] [--interim]

Needs PyTorch, as gemm_peers.py does, whose graphs and turns these are. For each case a line: its type and extents, its text over p (the product), r
(a matrix like it), row and col (f32), or over a and w (whole operands), and microseconds of each library. --interim: nothing is compiled, so
what follows is carried out as a list, or by a second kernel.
"""
import argparse
import ctypes
import re
import time

import torch

import gemm_peers as peers
import ng

GRAPH_MS = 2
NO_JIT = ng.RECORDS.enums["ng_ctx_flag"]["NG_CTX_NO_JIT"]
THIN = [(8, 1024, 1024), (8, 4096, 4096), (8, 14336, 4096), (32, 4096, 4096), (128, 1024, 1024), (128, 4096, 4096), (256, 1024, 1024), (256, 2048, 1024), (512, 1024, 2048), (512, 2048, 2048)]
SCALED, GELU = "f16(p * col * row)", "f16(gelu(p * col * row) + r)"
BIASED, GELU_BIASED = "relu(p + row)", "gelu(p + row) + r"
FOLLOWS = {"int8": ["f16(p)", SCALED, GELU], "tf32": ["p", BIASED, GELU_BIASED], "fp16": ["f16(p)", f"f16({BIASED})", f"f16({GELU_BIASED})"]}
MADE = ["f16(a @ f16(w))", "f16(gelu(a @ f16(f32(w) * row)) + r)"]
WEIGHTS = {"i8": torch.int8, "e4m3": torch.float8_e4m3fn}
WEIGHED = [(8, 4096, 4096), (32, 4096, 4096), (64, 4096, 4096), (128, 1024, 1024), (128, 4096, 4096), (256, 4096, 4096), (16, 6144, 4096), (16, 11008, 4096), (16, 14336, 4096), (64, 14336, 4096), (128, 14336, 4096), (256, 14336, 4096), (128, 4096, 14336), (512, 4096, 4096)]


def cases():
    for kind, texts in FOLLOWS.items():
        yield from ((kind, extents, text) for extents in THIN for text in texts)
    for kind in WEIGHTS:
        yield from ((kind, extents, text) for extents in WEIGHED for text in MADE)


class Program(peers.Ours):
    """A case as a program of libng over PyTorch's memory."""

    def __init__(self, library, kind, operands, text):
        self.library, c = library, library.c
        scope = c.ng_scope_create(library.context, 0)
        params = self.params_of(scope, {name: (tensor.dtype, tensor.shape) for name, tensor in operands.items()})
        if kind not in WEIGHTS:
            desc = peers.MatmulDesc(flags=peers.TF32 if kind == "tf32" else 0)
            params["p"] = c.ng_matmul(params.pop("a"), params.pop("w"), ctypes.byref(desc))
        self.compile_text(scope, text, params)


def operands_of(kind, extents, text):
    m, n, k = extents
    a, w = (torch.float16, WEIGHTS[kind]) if kind in WEIGHTS else peers.KINDS[kind][0][:2]
    out = torch.float32 if kind == "tf32" else torch.float16
    shapes = {"a": (a, m, k), "w": (w, k, n), "r": (out, m, n), "col": (torch.float32, m, 1), "row": (torch.float32, 1, n)}
    wanted = {name: shape for name, shape in shapes.items() if name in "aw" or re.search(rf"\b{name}\b", text)}
    return {name: peers.random_matrix(*shape) for name, shape in wanted.items()}, torch.empty(m, n, dtype=out, device="cuda")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="+"), parser.add_argument("--only", nargs="*", default=[""]), parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--interim", action="store_true")
    given = parser.parse_args()
    libraries = [ng.Library(path, "cuda", NO_JIT if given.interim else 0) for path in given.libraries]
    end = time.monotonic() + given.seconds
    print("| case |", " | ".join(given.libraries), "|\n|---|" + "---:|" * len(libraries))
    for kind, extents, text in cases():
        name = f"{kind} {'x'.join(map(str, extents))} {text}"
        if not any(only in name for only in given.only) or time.monotonic() > end:
            continue
        first, _ = operands_of(kind, extents, text)
        count = min(64, max(1, -(-2 * peers.CACHE_BYTES // sum(x.nbytes for x in first.values()))))
        sets = [operands_of(kind, extents, text) for _ in range(count)]
        programs = [Program(library, kind, first, text) for library in libraries]
        graphs = [peers.Graph([program.call_on(list(operands.values()), out) for operands, out in sets], GRAPH_MS) for program in programs]
        print(f"| {name} |", " | ".join(f"{us:.1f}" for us in peers.by_turns(graphs)), "|", flush=True)
        for program in programs:
            program.release()


if __name__ == "__main__":
    main()
