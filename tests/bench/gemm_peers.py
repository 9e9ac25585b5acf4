"""cuBLASLt's times for the products that ngtool measured: the best of what its heuristic proposes, and the first, for each case.

    ngtool bench gemm --csv OURS.csv && python3 tests/bench/gemm_peers.py OURS.csv PEERS.csv && python3 tests/bench/compare.py PEERS.csv OURS.csv

Run all three in one go on one machine with PyTorch, which brings the device's memory, streams and graphs; cuBLASLt is called as it
is. Cases are found by name: TYPE mM nN kK AB. Buffers take turns until they are twice the second cache; calls are in a graph.
"""
import csv
import ctypes
import glob
import os
import re
import statistics
import sys

import torch

CASE = re.compile(r"(fp16|bf16|tf32|fp32|fp64|e4m3|int8) m(\d+) n(\d+) k(\d+) ([nt])([nt])")
CACHE_BYTES, WORKSPACE_BYTES, HEURISTICS = 60 << 20, 64 << 20, 16
# As library_types.h and cublas_api.h number them: type of operands, of the result, computation, scale.
R_32F, R_64F, R_16F, R_8I, R_32I, R_16BF, R_8F_E4M3 = 0, 1, 2, 3, 10, 14, 28
COMPUTE_32F, COMPUTE_TF32, COMPUTE_64F, COMPUTE_32I = 68, 77, 70, 72
KINDS = {
    "fp16": (torch.float16, torch.float16, R_16F, R_16F, COMPUTE_32F, R_32F),
    "bf16": (torch.bfloat16, torch.bfloat16, R_16BF, R_16BF, COMPUTE_32F, R_32F),
    "tf32": (torch.float32, torch.float32, R_32F, R_32F, COMPUTE_TF32, R_32F),
    "fp32": (torch.float32, torch.float32, R_32F, R_32F, COMPUTE_32F, R_32F),
    "fp64": (torch.float64, torch.float64, R_64F, R_64F, COMPUTE_64F, R_64F),
    "e4m3": (torch.float8_e4m3fn, torch.float16, R_8F_E4M3, R_16F, COMPUTE_32F, R_32F),
    "int8": (torch.int8, torch.int32, R_8I, R_32I, COMPUTE_32I, R_32I),
}
OP_N, OP_T = 0, 1
DESC_TRANSA, DESC_TRANSB, PREFERENCE_WORKSPACE = 3, 4, 1


class Heuristic(ctypes.Structure):
    _fields_ = [("algo", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


def find_library():
    packages = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia")
    for path in ["libcublasLt.so.13", "libcublasLt.so.12", *glob.glob(packages + "/**/libcublasLt.so*", recursive=True)]:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    sys.exit("cuBLASLt is not to be found")


class Library:
    def __init__(self):
        self.lt, self.handle = find_library(), ctypes.c_void_p()
        self.call("cublasLtCreate", ctypes.byref(self.handle))
        self.workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")

    def call(self, name, *arguments):
        status = getattr(self.lt, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} says {status}")

    def layout(self, kind, rows, columns, line):
        layout = ctypes.c_void_p()
        self.call("cublasLtMatrixLayoutCreate", ctypes.byref(layout), kind, ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(line))
        return layout


class Product:
    """c [m, n] = a b, row by row, which to cuBLAS is the product of the transposes; a and b stored transposed where ways say 't'."""

    def __init__(self, library, kind, extents, ways):
        _, _, type_in, type_out, compute, scale = KINDS[kind]
        (m, n, k), self.library = extents, library
        self.desc, preference, found = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        library.call("cublasLtMatmulDescCreate", ctypes.byref(self.desc), compute, scale)
        for attribute, op in ((DESC_TRANSA, OP_T if ways[1] == "t" else OP_N), (DESC_TRANSB, OP_T if ways[0] == "t" else OP_N)):
            library.call("cublasLtMatmulDescSetAttribute", self.desc, attribute, ctypes.byref(ctypes.c_int32(op)), ctypes.c_size_t(4))
        self.first = library.layout(type_in, k, n, k) if ways[1] == "t" else library.layout(type_in, n, k, n)
        self.second = library.layout(type_in, m, k, m) if ways[0] == "t" else library.layout(type_in, k, m, k)
        self.result = library.layout(type_out, n, m, n)
        library.call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        library.call("cublasLtMatmulPreferenceSetAttribute", preference, PREFERENCE_WORKSPACE, ctypes.byref(ctypes.c_size_t(WORKSPACE_BYTES)), ctypes.c_size_t(8))
        proposals = (Heuristic * HEURISTICS)()
        library.call("cublasLtMatmulAlgoGetHeuristic", library.handle, self.desc, self.first, self.second, self.result, self.result, preference, HEURISTICS, proposals, ctypes.byref(found))
        self.proposals = list(proposals)[:found.value]
        one = {R_32I: ctypes.c_int32, R_64F: ctypes.c_double}.get(scale, ctypes.c_float)
        self.one, self.zero = one(1), one(0)

    def run(self, proposal, a, b, c):
        pointer = lambda tensor: ctypes.c_void_p(tensor.data_ptr())
        self.library.call("cublasLtMatmul", self.library.handle, self.desc, ctypes.byref(self.one), pointer(b), self.first, pointer(a), self.second, ctypes.byref(self.zero), pointer(c), self.result,
                          pointer(c), self.result, proposal.algo, pointer(self.library.workspace), ctypes.c_size_t(WORKSPACE_BYTES), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


def random_matrix(kind, rows, columns):
    wanted = KINDS[kind][0]
    if wanted == torch.int8:
        return torch.randint(-127, 128, (rows, columns), dtype=torch.int8, device="cuda")
    return torch.randn(rows, columns, device="cuda").to(wanted)


def microseconds(calls, most_ms):
    """Of a call, in a graph of many: the median of five replays."""
    for call in calls[:2]:
        call()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record(), calls[0](), end.record(), torch.cuda.synchronize()
    count = max(3, min(400, int(most_ms / max(begin.elapsed_time(end), 2e-3))))
    graph, times = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for i in range(count):
            calls[i % len(calls)]()
    graph.replay()
    for _ in range(5):
        begin.record(), graph.replay(), end.record(), torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / count * 1e3)
    return statistics.median(times)


def measure(library, kind, extents, ways):
    m, n, k = extents
    product, result = Product(library, kind, extents, ways), KINDS[kind][1]
    a_shape, b_shape = (m, k) if ways[0] == "n" else (k, m), (k, n) if ways[1] == "n" else (n, k)
    each = (m * k + k * n + m * n) * torch.empty(0, dtype=KINDS[kind][0]).element_size()
    buffers = [(random_matrix(kind, *a_shape), random_matrix(kind, *b_shape), torch.empty(m, n, dtype=result, device="cuda")) for _ in range(max(1, min(64, -(-2 * CACHE_BYTES // each))))]
    times = [microseconds([lambda buffer=buffer: product.run(proposal, *buffer) for buffer in buffers], 2) for proposal in product.proposals]
    order = sorted(range(len(times)), key=times.__getitem__)
    again = [microseconds([lambda buffer=buffer: product.run(product.proposals[i], *buffer) for buffer in buffers], 20) for i in order[:2]]
    return min(again), times[0]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    library = Library()
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        cases = [row["case"] for row in csv.DictReader(file) if row["section"] == "gemm"]
    with open(sys.argv[2], "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["section", "case", "peer", "us", "rate", "unit"])
        for case in cases:
            parts = CASE.fullmatch(case)
            if not parts:
                continue
            kind, extents, ways = parts[1], tuple(map(int, parts.group(2, 3, 4))), parts[5] + parts[6]
            try:
                best, first = measure(library, kind, extents, ways)
            except RuntimeError as error:
                print(f"{case}: {error}")
                continue
            for peer, us in (("cublasLt best", best), ("cublasLt first", first)):
                rows.writerow(["gemm", case, peer, f"{us:.3f}", f"{2 * extents[0] * extents[1] * extents[2] / us / 1e6:.1f}", "TFLOP/s"])
            file.flush()


if __name__ == "__main__":
    main()
