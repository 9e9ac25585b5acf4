"""What the peers' timing needs of libng, of the C loops and of oneDNN: each behind a few Python functions over NumPy arrays."""
import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "numpy"))
import ng  # noqa: E402

RECORDS = ng.RECORDS
ConvDesc, PoolDesc, CompileDesc, Run = (ng.struct(name) for name in ("ng_conv_desc", "ng_pool_desc", "ng_compile_desc", "ng_run"))
PAGE = 4096


def room(shape, dtype):
    """An array that begins on a page."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(count + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start:start + count].view(dtype).reshape(shape)


class Program:
    """A compiled program over NumPy arrays: nothing is copied, each run reads and writes their memory."""

    def __init__(self, library, build, args, outs, alias=None, scalars=b""):
        """args, outs: (dtype name, array). build: (library's functions, scope, params) -> roots."""
        self.library, self.kept = library, [args, outs, scalars]
        c = library.c
        scope = c.ng_scope_create(library.context, 0)
        params = [c.ng_param(scope, i, ctypes.byref(shape_of(name, array))) for i, (name, array) in enumerate(args)]
        roots = build(c, scope, params)
        desc, handle = CompileDesc(), ctypes.c_void_p()
        if alias:
            aliases = (ctypes.c_int32 * len(alias))(*alias)
            desc.alias = ctypes.addressof(aliases)
        library.call("ng_compile", library.context, ctypes.addressof(desc), pointers(roots), len(roots), ctypes.addressof(handle))
        library.call("ng_prog_wait", handle, (1 << 64) - 1)
        c.ng_scope_release(scope)
        self.handle = handle
        self.tensors = [library.wrap(name, array) for name, array in args]
        outputs = [self.tensors[alias[i]] if alias and alias[i] >= 0 else library.wrap(name, array) for i, (name, array) in enumerate(outs)]
        self.args, self.outs = pointers(self.tensors), pointers(outputs)
        self.run = Run(nargs=len(args), nout=len(outs), args=ctypes.addressof(self.args), out=ctypes.addressof(self.outs),
                       scalar_bytes=len(scalars))
        self.scalars = ctypes.create_string_buffer(scalars, max(1, len(scalars)))
        self.run.scalars = ctypes.addressof(self.scalars) if scalars else None

    def once(self):
        self.library.call("ng_prog_run", self.handle, None, ctypes.addressof(self.run))

    def repeat(self, count):
        seconds = self.library.loops.repeat_run(self.library.c.ng_prog_run, self.handle, ctypes.addressof(self.run), count)
        if seconds < 0:
            self.once()
        return seconds


def pointers(handles):
    return (ctypes.c_void_p * len(handles))(*handles)


def shape_of(name, array):
    shape = ng.Shape(dtype=ng.CODE_OF[name], ndim=array.ndim)
    shape.dims[:array.ndim] = array.shape
    return shape


class Library(ng.Library):
    """libng.so with a CPU context of so many threads."""

    def __init__(self, path, threads, loops):
        super().__init__(path)
        self.c.ng_ctx_release(self.context)
        self.loops = loops
        desc = ng.ContextDesc(version=ng.RECORDS.version, backend=b"cpu", cache_dir=b"", threads=threads)
        self.call("ng_ctx_create", ctypes.addressof(desc), ctypes.addressof(self.context))

    def wrap(self, name, array):
        shape, out = shape_of(name, array), ctypes.c_void_p()
        self.call("ng_tensor_wrap", self.context, ctypes.addressof(shape), array.ctypes.data, array.nbytes, None, None, ctypes.addressof(out))
        return out.value

    def text(self, source, args, outs):
        """A program of a text over x and y."""
        def build(c, scope, params):
            names = ",".join("xy"[:len(params)])
            return [c.ng_parse(scope, source.encode(), names.encode(), pointers(params), len(params))]
        return Program(self, build, args, outs)


def compiled(source, folder, arguments):
    """A C or C++ file of this folder as a library; None, and why, where it does not compile."""
    target = Path(folder) / (source.split(".")[0] + "_" + str(abs(hash(tuple(arguments)))) + ".so")
    compiler = ["cc", "-std=c11"] if source.endswith(".c") else ["c++", "-std=c++20"]
    said = subprocess.run([*compiler, *arguments, "-shared", "-fPIC", str(HERE / source), "-o", str(target), *LIBRARIES[source]],
                          capture_output=True, text=True, check=False)
    if said.returncode:
        print(f"# SKIPPED {source}: {said.stderr.strip().splitlines()[0] if said.stderr.strip() else 'no compiler'}")
        return None
    return ctypes.CDLL(str(target))


LIBRARIES = {"peer_loops.c": ["-lm", "-pthread"], "peer_onednn.cc": ["-ldnnl"]}


def load_loops(folder, arguments):
    loops = compiled("peer_loops.c", folder, arguments)
    if loops is None:
        sys.exit("The C loops also time the calls: without a C compiler for this machine there are no figures.")
    for name in ("repeat_run", "repeat_loop", "repeat_walk"):
        getattr(loops, name).restype = ctypes.c_double
    loops.repeat_run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
    loops.repeat_loop.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3
    loops.repeat_walk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_int64]
    return loops


def loop_peer(loops, name, x, y, out):
    function = getattr(loops, name)
    return lambda count: loops.repeat_loop(function, x.ctypes.data, y.ctypes.data, out.ctypes.data, *x.shape, count)


class OneDnn:
    """None of its calls where its headers or its library are missing."""

    def __init__(self, folder):
        self.c = compiled("peer_onednn.cc", folder, ["-O1"])
        if self.c:
            self.c.onednn_product.restype = self.c.onednn_convolution.restype = ctypes.c_void_p
            self.c.onednn_product.argtypes = [ctypes.c_int] + [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 3
            self.c.onednn_convolution.argtypes = [ctypes.c_int] * 2 + [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 3
            self.c.onednn_repeat.argtypes, self.c.onednn_repeat.restype = [ctypes.c_void_p, ctypes.c_int64], ctypes.c_double

    def repeats(self, job):
        return (lambda count: self.c.onednn_repeat(job, count)) if job else None

    def product(self, bits, sizes, a, b, out):
        return self.c and self.repeats(self.c.onednn_product(bits, *sizes, a.ctypes.data, b.ctypes.data, out.ctypes.data))

    def convolution(self, which, plain, x, w, y):
        data = [array.ctypes.data for array in (x, w, y)]
        return self.c and self.repeats(self.c.onednn_convolution(which, plain, *x.shape[:3], *data))


def openblas():
    """sgemm and dgemm of OpenBLAS itself, and how its threads are set; None where it is not installed."""
    for name in ("libopenblas.so.0", "libopenblas.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    print("# SKIPPED OpenBLAS: there is no libopenblas.so.0")
    return None


def set_gomp_threads(threads):
    """How many threads oneDNN's next run takes."""
    try:
        ctypes.CDLL("libgomp.so.1").omp_set_num_threads(threads)
    except OSError:
        pass
