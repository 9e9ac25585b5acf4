"""What a user of a CPU would pick instead, measured beside libng in one run: NumPy, numexpr, OpenBLAS, oneDNN, PyTorch, C loops.

    /usr/bin/python3 tests/bench/cpu_peers.py LIBNG.SO [SECTION..] [--only TEXT] [--hold] [--out FILE.csv]

Sections: memory fused cache small gemm narrow conv index digits; without one, all. Every row says with how many threads.
Peers take turns, up to fifteen rounds of 20 ms and more; the best millisecond of each counts, for whatever else runs only ever adds. Arrays
are the same for all peers and stay where they are: what fits in a cache is there. What is missing is skipped and said so. At
the end, what is wanted of libng is set against what was measured.
"""
import argparse
import ctypes
import functools
import os
import re
import tempfile

import numpy as np

from peer_digits import measure_digits
from peer_library import RECORDS, ConvDesc, Library, OneDnn, Program, load_loops, loop_peer, openblas, room, set_gomp_threads, shape_of
from peer_timing import Peer, Stopwatch, calls
from peer_wants import report

F32_OF = {"f32": np.float32, "f16": np.float16}


def gelu_chain(x, y, out):
    np.add(np.multiply(0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x))), 1.1, out=out), 0.3, out=out)


def twenty(x, y, out):
    a = ((x + y) * x - y) * 0.5 + x
    b = ((a * y - 0.25) * x + y) * 0.125 - a
    c = (b * y + 0.75) * a - x
    np.add((c * 0.5 + b) * y - a, c, out=out)


def batchnorm(x, y, out):
    np.multiply(1 / np.sqrt(x.var(1, keepdims=True) + x.dtype.type(0.001)), x - x.mean(1, keepdims=True), out=out)


def softmax(x, y, out):
    np.exp(x - x.max(1, keepdims=True), out=out)
    out /= out.sum(1, keepdims=True)


TWENTY = ("a = ((x + y) * x - y) * 0.5 + x; b = ((a * y - 0.25) * x + y) * 0.125 - a; c = (b * y + 0.75) * a - x;"
          "(c * 0.5 + b) * y - a + c")
A, B = "(((x + y) * x - y) * h + x)", "(((({a}) * y - q) * x + y) * e - ({a}))"
C = "((({b}) * y + t) * ({a}) - x)"
# numexpr has no names for parts of an expression; it finds equal parts itself.
TWENTY_NUMEXPR = "(({c}) * h + ({b})) * y - ({a}) + ({c})".format(
    a=A, b=B.format(a=A), c=C.format(b=B.format(a=A), a=A))

# name, libng's text, its inputs, C function, NumPy function, numexpr's text, arrays that cross the memory bus at least
KERNELS = [
    ("x+y", "x + y", 2, "add", lambda x, y, out: np.add(x, y, out=out), "x + y", 3),
    ("a*x+b", "2.5 * x + 0.5", 1, "affine", lambda x, y, out: np.add(np.multiply(x, 2.5, out=out), 0.5, out=out), "m * x + h", 2),
    ("gelu_chain", "0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x * x * x))) * 1.1 + 0.3", 1, "gelu_chain", gelu_chain,
     "h * x * (o + tanh(g * (x + k * x * x * x))) * u + v", 2),
    ("20 operations", TWENTY, 2, "twenty_operations", twenty, TWENTY_NUMEXPR, 3),
    ("batchnorm rows", "rsqrt(var(x, 1) + 0.001) * (x - mean(x, 1))", 1, "batchnorm", batchnorm, None, 2),
    ("softmax rows", "softmax(x, 1)", 1, "softmax", softmax, None, 2),
    ("column sums", "sum(x, 0)", 1, "column_sums", lambda x, y, out: np.sum(x, 0, out=out[0]), "sum(x, axis=0)", 1),
]
# f32 constants, for numexpr computes in f64 with its own.
NUMBERS = {name: np.float32(v) for name, v in dict(m=2.5, h=0.5, o=1, g=0.79788456, k=0.044715, u=1.1, v=0.3, q=0.25, e=0.125, t=0.75).items()}


def numexpr_peer(text, x, y, out, threads):
    try:
        import numexpr
    except ImportError:
        return None
    numexpr.set_num_threads(threads)
    # numexpr calls f32 float, and f64 double.
    function = numexpr.NumExpr(text, [(name, float) for name in sorted({*NUMBERS, "x", "y"} & set(re.findall(r"\w+", text)))])
    names = function.input_names
    values = [x if name == "x" else y if name == "y" else NUMBERS[name] for name in names]
    into = {} if "sum(" in text else {"out": out}
    return calls(lambda: function(*values, ex_uses_vml=False, **into))


class Figures:
    """The sections; each fills the stopwatch's rows and `found`, {case: {(peer, threads): microseconds}}."""

    def __init__(self, options, folder):
        self.watch, self.found = Stopwatch(options.only), {}
        self.random = np.random.default_rng(1)
        self.loops = load_loops(folder, ["-O3", "-march=native"])
        self.libraries = {threads: Library(os.path.abspath(options.library), threads, self.loops) for threads in (1, 2)}
        if options.hold:
            self.watch.hold = self.loops.hold_core
        self.folder, self.blas = folder, openblas()

    @functools.cached_property
    def onednn(self):
        return OneDnn(self.folder)

    @functools.cached_property
    def fast_loops(self):
        return load_loops(self.folder, ["-O3", "-march=native", "-ffast-math"])

    def measure(self, section, case, work, unit, peers):
        found = self.watch.measure(section, case, work, unit, [peer for peer in peers if peer and peer.repeat])
        if found:
            self.found[section, case] = found

    def ng(self, threads, source, args, outs):
        return Peer("ng", threads, self.libraries[threads].text(source, args, outs).repeat)

    def memory(self):
        x, out = room((64 << 20,), np.float32), room((64 << 20,), np.float32)
        x[...], out[...] = 1, 0
        for how, name in enumerate(("copy", "read")):
            def walk(count, threads, how=how):
                return self.loops.repeat_walk(how, x.ctypes.data, out.ctypes.data, x.nbytes, threads, count)
            peers = [Peer("C", threads, functools.partial(walk, threads=threads), False) for threads in (1, 2)]
            self.measure("memory", f"{name} 256MB", x.nbytes * (2 - how), "GB/s", peers)

    def kernels(self, section, rows, threads):
        for dtype, kind in F32_OF.items():
            height = rows // 2 if dtype == "f16" and rows > 1000 else rows       # NumPy takes seconds for a chain of halves
            for name, source, inputs, loop, numpy_function, numexpr_text, arrays in KERNELS:
                case = f"{name} {dtype}"
                if self.watch.only not in f"{section} {case}":
                    continue
                sums = name == "column sums"
                x, y = (room((height, 1024), kind) for _ in range(2))
                for array in (x, y):
                    array[...] = self.random.random((height, 1024), np.float32)
                out = room((1, 1024) if sums else x.shape, np.float32 if sums else kind)
                out[...] = 0
                text = source if dtype == "f32" or sums else f"f16({source})" if ";" not in source else f"f16({source.rsplit(';', 1)[1]})"
                if dtype == "f16" and ";" in source:
                    text = source.rsplit(";", 1)[0] + ";" + text
                peers = [self.ng(threads, text, [(dtype, x), (dtype, y)][:inputs], [("f32" if sums else dtype, out)]),
                         Peer("numpy", 1, calls(lambda: numpy_function(x, y, out)))]
                if threads > 1 and dtype == "f32" and numexpr_text:
                    peers.append(Peer("numexpr", threads, numexpr_peer(numexpr_text, x, y, out, threads), False))
                if threads == 1:
                    peers.append(Peer("C -O3", 1, loop_peer(self.loops, f"{loop}_{dtype}", x, y, out)))
                    peers.append(Peer("C -O3 -ffast-math", 1, loop_peer(self.fast_loops, f"{loop}_{dtype}", x, y, out)))
                    if sums and dtype == "f32":
                        peers.append(Peer("C -O3, f64 sums", 1, loop_peer(self.loops, f"{loop}_wide_{dtype}", x, y, out)))
                self.measure(section, case, x.nbytes * arrays, "GB/s", peers)

    def fused(self):
        self.kernels("fused", 65536, 2)

    def cache(self):
        self.kernels("cache", 32, 1)

    def small(self):
        x, y, out = (room((8,), np.float32) for _ in range(3))
        x[...] = y[...] = 1
        self.measure("small", "ng_prog_run of x + y, 8 elements", 0, "", [self.ng(1, "x + y", [("f32", x), ("f32", y)], [("f32", out)])])

    def blas_peer(self, letter, threads, sizes, a, b, out):
        if not self.blas:
            return None
        real = ctypes.c_float if letter == "s" else ctypes.c_double
        gemm, (m, n, k) = getattr(self.blas, f"cblas_{letter}gemm"), sizes
        arguments = [101, 111, 111, m, n, k, real(1), ctypes.c_void_p(a.ctypes.data), k, ctypes.c_void_p(b.ctypes.data), n, real(0),
                     ctypes.c_void_p(out.ctypes.data), n]

        def repeat(count):
            self.blas.openblas_set_num_threads(threads)
            return calls(lambda: gemm(*arguments))(count)
        return Peer("openblas", threads, repeat)

    def gemm(self):
        for letter, dtype, kind in (("s", "f32", np.float32), ("d", "f64", np.float64)):
            for sizes in ((1024,) * 3, (512,) * 3, (64, 4096, 4096), (1021, 1019, 1031), (333, 517, 777)):
                m, n, k = sizes
                case = f"{letter}gemm {m}x{n}x{k}"
                if self.watch.only not in f"gemm {case}":
                    continue
                a, b, out = room((m, k), kind), room((k, n), kind), room((m, n), kind)
                a[...], b[...] = self.random.standard_normal((m, k)), self.random.standard_normal((k, n))
                peers = [self.ng(threads, "x @ y", [(dtype, a), (dtype, b)], [(dtype, out)]) for threads in (1, 2)]
                peers += [self.blas_peer(letter, threads, sizes, a, b, out) for threads in (1, 2)]
                self.measure("gemm", case, 2 * m * n * k, "GFLOP/s", peers)

    def onednn_peer(self, name, threads, repeat):
        def with_threads(count):
            set_gomp_threads(threads)
            return repeat(count)
        return Peer(name, threads, with_threads) if repeat else None

    def narrow(self):
        for dtype, bits, result in (("bf16", 16, "f32"), ("i8", 8, "i32")):
            for sizes in ((1024,) * 3, (512,) * 3, (64, 4096, 4096)):
                m, n, k = sizes
                kind = np.uint16 if bits == 16 else np.int8
                a, b, out = room((m, k), kind), room((k, n), kind), room((m, n), np.float32 if bits == 16 else np.int32)
                for array in (a, b):
                    values = self.random.standard_normal(array.shape, np.float32)
                    array[...] = (values.view(np.uint32) >> 16) if bits == 16 else values * 40
                peers = [self.ng(threads, "x @ y", [(dtype, a), (dtype, b)], [(result, out)]) for threads in (1, 2)]
                peers += [self.onednn_peer("onednn plain", t, self.onednn.product(bits, sizes, a, b, out)) for t in (1, 2)]
                self.measure("narrow", f"{dtype} gemm {m}x{n}x{k}", 2 * m * n * k, "GFLOP/s", peers)

    def conv(self):
        x, y, w = room((8, 64, 56, 56), np.float32), room((8, 64, 56, 56), np.float32), room((64, 64, 3, 3), np.float32)
        for array in (x, y, w):
            array[...] = self.random.standard_normal(array.shape, np.float32)
        desc = ConvDesc()
        desc.pad_lo[:2] = desc.pad_hi[:2] = [1, 1]
        at, of = ctypes.addressof(desc), lambda array: ctypes.byref(shape_of("f32", array))
        passes = [("forward", [x, w], y, lambda c, p: c.ng_conv(*p, at)),
                  ("dx", [w, y], x, lambda c, p: c.ng_conv_dx(*p, of(x), at)),
                  ("dw", [x, y], w, lambda c, p: c.ng_conv_dw(*p, of(w), at))]
        for which, (name, args, out, call) in enumerate(passes):
            if self.watch.only not in f"conv {name}":
                continue
            peers = [Peer("ng", t, Program(library, lambda c, scope, p, call=call: [call(c, p)], [("f32", a) for a in args], [("f32", out)]).repeat)
                     for t, library in self.libraries.items()]
            peers += [self.onednn_peer(f"onednn {layout}", 2, self.onednn.convolution(which, plain, x, w, y))
                      for plain, layout in ((1, "nchw"), (0, "best, reordered"))]
            self.measure("conv", name, 2 * x.size * 64 * 9, "GFLOP/s", peers)

    def index(self):
        n, few = 10_000_000, 1_000_000
        fold = RECORDS.enums["ng_fold"]["NG_FOLD_SUM"]
        values, out = room((n,), np.float32), room((n,), np.float32)
        values[...] = self.random.standard_normal(n, np.float32)
        indices, order = room((n,), np.int64), room((n,), np.int64)
        indices[...] = self.random.integers(0, few, n)
        base, into = room((few,), np.float32), room((few,), np.float32)
        base[...] = 0
        bounds = room((100_001,), np.int64)
        bounds[...] = np.sort(np.concatenate([[0, n], self.random.integers(1, n, 99_999)]))
        folded = room((100_000,), np.float32)
        starts = np.minimum(bounds[:-1], n - 1)
        cases = [
            ("put with SUM", [("f32", base), ("i64", indices), ("f32", values)], ("f32", into), lambda c, p: c.ng_put(*p, 0, fold),
             "add.at", lambda: np.add.at(base, indices, values)),
            ("scan", [("f32", values)], ("f32", out), lambda c, p: c.ng_scan(p[0], 0, fold, 0), "cumsum", lambda: np.cumsum(values, out=out)),
            ("argsort", [("f32", values)], ("i64", order), lambda c, p: c.ng_argsort(p[0], 0, 0), "argsort stable",
             lambda: np.argsort(values, kind="stable")),
            ("segment", [("f32", values), ("i64", bounds)], ("f32", folded), lambda c, p: c.ng_segment(*p, fold), "reduceat",
             lambda: np.add.reduceat(values, starts, out=folded)),
        ]
        for name, args, result, call, numpy_name, function in cases:
            if self.watch.only not in f"index {name}":
                continue
            peers = [Peer("ng", t, Program(library, lambda c, scope, p, call=call: [call(c, p)], args, [result]).repeat)
                     for t, library in self.libraries.items()]
            self.measure("index", name, n, "Gelements/s", peers + [Peer(f"numpy {numpy_name}", 1, calls(function))])

    def digits(self):
        found = measure_digits(self.watch, self.libraries)
        if found:
            self.found["digits", "step"] = found


SECTIONS = "memory fused cache small gemm narrow conv index digits".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", help="libng.so")
    parser.add_argument("sections", nargs="*", help=" ".join(SECTIONS))
    parser.add_argument("--only", default="", help="the cases whose section and name have this in them")
    parser.add_argument("--hold", action="store_true", help="for a busy machine: two threads on two cores; one thread with the second core kept idle")
    parser.add_argument("--out", help="write the rows there")
    options = parser.parse_args()
    wrong = set(options.sections) - set(SECTIONS)
    if wrong:
        parser.error(f"there is no section {' '.join(wrong)}; there are {' '.join(SECTIONS)}")
    print("# numpy", np.__version__, "on", os.cpu_count(), "cores")
    with tempfile.TemporaryDirectory() as folder:
        figures = Figures(options, folder)
        for section in options.sections or SECTIONS:
            getattr(figures, section)()
    report(figures.found)
    if options.out:
        figures.watch.write(options.out)


if __name__ == "__main__":
    main()
