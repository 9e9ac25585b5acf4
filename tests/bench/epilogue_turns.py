"""What follows a product of f16 beside the product alone: libng's programs of both, all in turns in one process, then each for long.

    python3 tests/bench/epilogue_turns.py LIBNG.so [--sizes 2048 4096 8192]

Needs PyTorch, as gemm_peers.py does, whose graphs and turns these are: a card at the limit of its power is slower behind hard work, so
times of two processes say little of large products. In turns all run at the clock that their mean power leaves, so times are of cycles;
for long each runs at the clock that its own leaves, so times are of energy. Squares, normal numbers, buffers that take turns; each text
is waited for.
"""
import argparse
import re

import torch

import gemm_peers as peers
import ng

TEXTS = ["a @ b", "(a @ b) * 0.5", "a @ b + v", "relu(a @ b + v)", "a @ b + r", "gelu(a @ b + v)", "gelu(a @ b + v) + r", "silu(a @ b) * r"]
OPERANDS = {"a": 2, "b": 2, "v": 1, "r": 2}        # their ranks
GRAPH_MS = 20


class Program(peers.Ours):
    """f16 of a text over square operands, as a program of libng over PyTorch's memory."""

    def __init__(self, library, n, text):
        self.library = library
        self.names = [name for name in OPERANDS if re.search(rf"\b{name}\b", text)]
        scope = library.c.ng_scope_create(library.context, 0)
        self.compile_text(scope, f"f16({text})", self.params_of(scope, {name: (torch.float16, (n,) * OPERANDS[name]) for name in self.names}))


def measure(library, n):
    """Microseconds of each text in turns, and for long."""
    count = max(1, -(-2 * peers.CACHE_BYTES // (8 * n * n)))
    buffers = [{name: torch.randn((n,) * rank, device="cuda").half() for name, rank in OPERANDS.items()} | {"c": torch.empty(n, n, dtype=torch.float16, device="cuda")} for _ in range(count)]
    programs = [Program(library, n, text) for text in TEXTS]
    graphs = [peers.Graph([program.call_on([buffer[name] for name in program.names], buffer["c"]) for buffer in buffers], GRAPH_MS) for program in programs]
    found = list(zip(peers.by_turns(graphs), [graph.lasting_microseconds() for graph in graphs]))
    for program in programs:
        program.release()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library"), parser.add_argument("--sizes", type=int, nargs="+", default=[2048, 4096, 8192])
    given = parser.parse_args()
    library = ng.Library(given.library, "cuda")
    print("| text |", " | ".join(f"{n}^3 in turns | for long" for n in given.sizes), "|\n|---|" + "---:|---:|" * len(given.sizes))
    columns = [measure(library, n) for n in given.sizes]
    for i, text in enumerate(TEXTS):
        print(f"| `f16({text})` |", " | ".join(f"{us:.1f}, {us / alone:.2f}" for column in columns for us, alone in zip(column[i], column[0])), "|", flush=True)


if __name__ == "__main__":
    main()
