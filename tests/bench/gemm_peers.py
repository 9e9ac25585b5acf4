"""cuBLASLt's times for the products that ngtool measured, and libng's beside them: the best of what its heuristic proposes, and the first.

    ngtool bench gemm --csv CASES.csv && python3 tests/bench/gemm_peers.py CASES.csv PEERS.csv [--library LIBNG.so --ours OURS.csv] [--only TEXT]
    python3 tests/bench/gemm_peers.py SHAPES.csv PEERS.csv [--kinds fp16 bf16 ..] [--part K/N] ..     columns m, n, k, transA, transB
    python3 tests/bench/gemm_peers.py squares PEERS.csv ..                                            bf16 all ways that it lies, e5m2
    python3 tests/bench/gemm_peers.py few PEERS.csv [--kinds ..] ..                                   1 to 64 rows by a language model's weights
    python3 tests/bench/gemm_peers.py any PEERS.csv [--kinds ..] ..                                   137 to 3001 rows by such
    python3 tests/bench/gemm_peers.py batches PEERS.csv [--kinds ..] ..                               many products at once
    python3 tests/bench/compare.py PEERS.csv OURS.csv

At the end it says of each type what cuBLASLt's best is by ours in the geometric mean, and which cases are behind. --part takes every N-th case,
--seconds ends in time. Of f32 it says, too, how far both are off what doubles have, beside |a| |b|. cuBLASLt has no product of two e5m2: that
type's b is e4m3.

Run all in one go on one machine with PyTorch, which brings the device's memory, streams and graphs; cuBLASLt is called as it is, libng
by ng_prog_run. Cases are found by name: TYPE [bB] mM nN kK AB. Buffers take turns until they are twice the second cache; calls are in a
graph, and graphs of both take turns in random order: a card that is at the limit of its power is 5 to 20 % slower behind hard work than
behind a pause.
"""
import argparse
import csv
import ctypes
import faulthandler
import glob
import os
import random
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "numpy"))
import gemm_cases  # noqa: E402
import ng  # noqa: E402

CACHE_BYTES, WORKSPACE_BYTES, HEURISTICS, ROUNDS = 60 << 20, 64 << 20, 16, 9
MOST_SECONDS = 60       # of a case: behind that the script says where it stands, and ends
# As library_types.h and cublas_api.h number them: types of a, b and the result, computation, scale.
R_32F, R_64F, R_16F, R_8I, R_32I, R_16BF, R_8F_E4M3, R_8F_E5M2 = 0, 1, 2, 3, 10, 14, 28, 29
COMPUTE_32F, COMPUTE_TF32, COMPUTE_64F, COMPUTE_32I = 68, 77, 70, 72
KINDS = {
    "fp16": ((torch.float16, torch.float16, torch.float16), (R_16F, R_16F, R_16F), COMPUTE_32F, R_32F),
    "bf16": ((torch.bfloat16, torch.bfloat16, torch.bfloat16), (R_16BF, R_16BF, R_16BF), COMPUTE_32F, R_32F),
    "tf32": ((torch.float32, torch.float32, torch.float32), (R_32F, R_32F, R_32F), COMPUTE_TF32, R_32F),
    "fp32": ((torch.float32, torch.float32, torch.float32), (R_32F, R_32F, R_32F), COMPUTE_32F, R_32F),
    "fp64": ((torch.float64, torch.float64, torch.float64), (R_64F, R_64F, R_64F), COMPUTE_64F, R_64F),
    "e4m3": ((torch.float8_e4m3fn, torch.float8_e4m3fn, torch.float16), (R_8F_E4M3, R_8F_E4M3, R_16F), COMPUTE_32F, R_32F),
    "e5m2": ((torch.float8_e5m2, torch.float8_e4m3fn, torch.float16), (R_8F_E5M2, R_8F_E4M3, R_16F), COMPUTE_32F, R_32F),
    "int8": ((torch.int8, torch.int8, torch.int32), (R_8I, R_8I, R_32I), COMPUTE_32I, R_32I),
}
NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2", torch.int8: "i8", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}
OP_N, OP_T = 0, 1
DESC_TRANSA, DESC_TRANSB, PREFERENCE_WORKSPACE, LAYOUT_BATCHES, LAYOUT_DISTANCE = 3, 4, 1, 5, 6


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

    def layout(self, kind, batch, rows, columns):
        """Of dense matrices one behind the other, a column (to libng a row) of each behind its last."""
        layout = ctypes.c_void_p()
        self.call("cublasLtMatrixLayoutCreate", ctypes.byref(layout), kind, ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows))
        for attribute, value in ((LAYOUT_BATCHES, ctypes.c_int32(batch)), (LAYOUT_DISTANCE, ctypes.c_int64(rows * columns))):
            self.call("cublasLtMatrixLayoutSetAttribute", layout, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))
        return layout


class Product:
    """c [m, n] = a b, row by row, which to cuBLAS is the product of the transposes; a and b stored transposed where ways say 't'."""

    def __init__(self, library, kind, extents, ways, batch=1):
        _, (type_a, type_b, type_out), compute, scale = KINDS[kind]
        (m, n, k), self.library = extents, library
        self.desc, preference, found = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        library.call("cublasLtMatmulDescCreate", ctypes.byref(self.desc), compute, scale)
        for attribute, op in ((DESC_TRANSA, OP_T if ways[1] == "t" else OP_N), (DESC_TRANSB, OP_T if ways[0] == "t" else OP_N)):
            library.call("cublasLtMatmulDescSetAttribute", self.desc, attribute, ctypes.byref(ctypes.c_int32(op)), ctypes.c_size_t(4))
        self.first = library.layout(type_b, batch, *((k, n) if ways[1] == "t" else (n, k)))
        self.second = library.layout(type_a, batch, *((m, k) if ways[0] == "t" else (k, m)))
        self.result = library.layout(type_out, batch, n, m)
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


MatmulDesc, CompileDesc, Run = (ng.struct(name) for name in ("ng_matmul_desc", "ng_compile_desc", "ng_run"))
TF32 = 1


def pointers(handles):
    return (ctypes.c_void_p * len(handles))(*handles)


class Ours:
    """The same product as a program of libng over PyTorch's memory."""

    def __init__(self, library, kind, extents, ways, batch=1):
        type_a, type_b, self.type_out = KINDS[kind][0]
        (m, n, k), self.library, c = extents, library, library.c
        scope, desc = c.ng_scope_create(library.context, 0), MatmulDesc(flags=TF32 if kind == "tf32" else 0)
        axes = (1, 0) if batch == 1 else (0, 2, 1)
        swapped = (ctypes.c_int32 * len(axes))(*axes)
        factors = []
        for i, (given, extent, way) in enumerate(((type_a, (m, k), ways[0]), (type_b, (k, n), ways[1]))):
            x = c.ng_param(scope, i, ctypes.byref(self.shape(given, batched(batch, extent if way == "n" else extent[::-1]))))
            factors.append(x if way == "n" else c.ng_permute(x, ctypes.byref(swapped), len(axes)))
        root = c.ng_cast(c.ng_matmul(*factors, ctypes.byref(desc)), ng.CODE_OF[NAMES[self.type_out]])
        self.compile(scope, root)

    def params_of(self, scope, shapes):
        """{name: (type, extents)} as parameters, in that order."""
        return {name: self.library.c.ng_param(scope, i, ctypes.byref(self.shape(*shape))) for i, (name, shape) in enumerate(shapes.items())}

    def compile_text(self, scope, text, operands, lengths=()):
        """operands: {name: expression}."""
        self.compile(scope, self.library.c.ng_parse(scope, text.encode(), ",".join(operands).encode(), pointers(list(operands.values())), len(operands)), lengths)

    def compile(self, scope, root, lengths=()):
        """Waits until it is as fast as it gets; the scope goes. lengths: the greatest of those that are not known."""
        most = (ctypes.c_int64 * len(lengths))(*lengths)
        self.tensors, self.handle, desc = [], ctypes.c_void_p(), CompileDesc(length_max=ctypes.addressof(most), nlength=len(lengths))
        self.library.call("ng_compile", self.library.context, ctypes.byref(desc), pointers([root]), 1, ctypes.byref(self.handle))
        self.library.call("ng_prog_wait", self.handle, (1 << 64) - 1)
        self.library.c.ng_scope_release(scope)

    def release(self):
        for tensor in self.tensors:
            self.library.c.ng_tensor_release(tensor)
        self.library.c.ng_prog_release(self.handle)

    def shape(self, dtype, extents):
        shape = ng.Shape(dtype=ng.CODE_OF[NAMES[dtype]], ndim=len(extents))
        shape.dims[:len(extents)] = extents
        return shape

    def wrapped(self, tensor):
        out = ctypes.c_void_p()
        self.library.call("ng_tensor_wrap", self.library.context, ctypes.byref(self.shape(tensor.dtype, tensor.shape)), tensor.data_ptr(), tensor.nbytes, None, None, ctypes.byref(out))
        self.tensors.append(out)
        return out.value

    def call_on(self, inputs, out):
        """A function that runs it on these."""
        args, outs = pointers([self.wrapped(x) for x in inputs]), pointers([self.wrapped(out)])
        run = Run(nargs=len(inputs), nout=1, args=ctypes.addressof(args), out=ctypes.addressof(outs))

        def call(_kept=(args, outs)):
            self.library.call("ng_prog_run", self.handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), ctypes.byref(run))
        return call


def batched(batch, extents):
    return tuple(extents) if batch == 1 else (batch, *extents)


def random_matrix(wanted, *extents):
    if wanted == torch.int8:
        return torch.randint(-127, 128, extents, dtype=torch.int8, device="cuda")
    return torch.randn(extents, device="cuda").to(wanted)


def event_ms(work):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record(), work(), end.record(), torch.cuda.synchronize()
    return begin.elapsed_time(end)


class Graph:
    """Many calls, one after the other, as one launch."""

    def __init__(self, calls, most_ms, most=400):
        with torch.cuda.stream(torch.cuda.Stream()):
            for call in calls[:2]:
                call()
        torch.cuda.synchronize()
        self.count = max(3, min(most, int(most_ms / max(event_ms(calls[0]), 2e-3))))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(self.count):
                calls[i % len(calls)]()
        self.graph.replay(), torch.cuda.synchronize()        # cuBLASLt's workspace is one: what runs beside would wait for flags of another

    def microseconds(self):
        return event_ms(self.graph.replay) / self.count * 1e3

    def lasting_microseconds(self, before_s=0.2, seconds=0.35):
        """The same where nothing else runs for so long, two replays always under way."""
        begin, events, first = time.perf_counter(), [], None
        while (now := time.perf_counter() - begin) < before_s + seconds:
            if first is None and now > before_s:
                first = len(events)
            self.graph.replay()
            events.append(torch.cuda.Event(enable_timing=True))
            events[-1].record()
            if len(events) > 2:
                events[-3].synchronize()
        torch.cuda.synchronize()
        first = min(first or 0, len(events) - 2)
        return events[first].elapsed_time(events[-1]) / (len(events) - 1 - first) / self.count * 1e3


def by_turns(graphs):
    """Of a call of each graph: the medians of a few replays. Each round has an order of its own: the clock follows the card's power by some
    20 to 40 ms, so who always comes behind light work would seem faster."""
    times, order, shuffle = [[] for _ in graphs], list(range(len(graphs))), random.Random(1).shuffle
    for _ in range(ROUNDS):
        shuffle(order)
        for i in order:
            times[i].append(graphs[i].microseconds())
    return [statistics.median(each) for each in times]


def errors_of(buffer, ways):
    """How far c is off a b in doubles, by |a| |b|: the most, and the root of the mean square."""
    a, b = (x.double() if way == "n" else x.double().mT for x, way in zip(buffer, ways))
    off = (buffer[2].double() - a @ b) / (a.abs() @ b.abs())
    return off.abs().max().item(), off.square().mean().sqrt().item()


def measure(library, ng_library, case):
    """{name: microseconds}, and for f32 {name: errors}."""
    _, kind, extents, ways, batch = case
    m, n, k = extents
    product, (type_a, type_b, result) = Product(library, kind, extents, ways, batch), KINDS[kind][0]
    a_shape, b_shape, c_shape = (batched(batch, shape) for shape in ((m, k) if ways[0] == "n" else (k, m), (k, n) if ways[1] == "n" else (n, k), (m, n)))
    each = batch * (m * k + k * n + m * n) * torch.empty(0, dtype=type_a).element_size()
    buffers = [(random_matrix(type_a, *a_shape), random_matrix(type_b, *b_shape), torch.empty(c_shape, dtype=result, device="cuda")) for _ in range(max(1, min(64, -(-2 * CACHE_BYTES // each))))]

    def calls(proposal):
        return [lambda buffer=buffer: product.run(proposal, *buffer) for buffer in buffers]
    times = [Graph(calls(proposal), 2, 50).microseconds() for proposal in product.proposals]
    order = sorted(range(len(times)), key=times.__getitem__)
    chosen = sorted({0, *order[:2]})
    graphs, runs = [Graph(calls(product.proposals[i]), 20) for i in chosen], {}
    if ng_library:
        ours = Ours(ng_library, kind, extents, ways, batch)
        own_calls = [ours.call_on(buffer[:2], buffer[2]) for buffer in buffers]
        graphs.append(Graph(own_calls, 20))
        runs["ng"] = own_calls[0]
    found = by_turns(graphs)
    mine = {"ng": found.pop()} if ng_library else {}
    runs["cublasLt best"] = calls(product.proposals[chosen[found.index(min(found))]])[0]
    errors = {}
    for name, run in runs.items() if kind == "fp32" else ():
        buffers[0][2].fill_(float("nan")), torch.cuda.synchronize()
        run(), torch.cuda.synchronize()
        errors[name] = errors_of(buffers[0], ways)
    if ng_library:
        ours.release()
    return {"cublasLt best": min(found), "cublasLt first": found[0]} | mine, errors


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases"), parser.add_argument("peers"), parser.add_argument("--library"), parser.add_argument("--ours")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--kinds", nargs="+", default=["fp16"], choices=list(KINDS), help="types of a list of shapes")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th case from the K-th on")
    parser.add_argument("--seconds", type=float, default=1e9, help="no case is begun behind that")
    given = parser.parse_args()
    if bool(given.library) != bool(given.ours):
        parser.error("--library and --ours belong together")
    return given


def main():
    given = arguments()
    cases, begin, times = [case for case in gemm_cases.read_cases(given.cases, given.kinds, given.only, given.part) if case.kind in KINDS], time.monotonic(), {}
    library, ng_library = Library(), ng.Library(given.library, "cuda") if given.library else None
    files = [open(path, "w", newline="", encoding="utf-8") for path in (given.peers, given.ours) if path]
    writers = [csv.writer(file) for file in files]
    for writer in writers:
        writer.writerow(("section", "case", "peer", "us", "rate", "unit"))
    for i, case in enumerate(cases):
        if time.monotonic() - begin > given.seconds:
            print(f"{len(cases) - i} of {len(cases)} cases are left after {given.seconds:.0f} s, from {case.name} on")
            break
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        try:
            found, errors = measure(library, ng_library, case)
        except (RuntimeError, ng.Fault) as error:
            print(f"{case.name}: {error}")
            continue
        times[case] = found
        said = [f"{name} {us:9.2f} us " for name, us in found.items()]
        said += [f" {name} is off by {most:.2e} of |a||b| at most, {usual:.2e} rms" for name, (most, usual) in errors.items()]
        print(f"{case.name:40s}", *said, flush=True)
        m, n, k = case.extents
        for peer, us in found.items():
            writers[peer == "ng"].writerow(("gemm", case.name, peer, f"{us:.3f}", f"{2 * case.batch * m * n * k / us / 1e6:.1f}", "TFLOP/s"))
        for file in files:
            file.flush()
    for line in gemm_cases.summary(times):
        print(line)


if __name__ == "__main__":
    main()
