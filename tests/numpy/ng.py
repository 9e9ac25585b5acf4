"""libng from Python, as small as NumPy tests need it: types and prototypes are made from the records of bindings/api.py."""
import ctypes
import os

import numpy as np

import formats
from formats import api

PLAIN = {"void": None, "char": ctypes.c_char, "uint8_t": ctypes.c_uint8, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
         "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t, "double": ctypes.c_double}
RECORDS = api.read_api()
CODES = RECORDS.enums["ng_dtype"]
NAME_OF = {CODES[d.constant]: d.name for d in RECORDS.dtypes}
CODE_OF = {name: code for code, name in NAME_OF.items()}


def ctype(kind):
    """The ctypes type of a C type. Addresses are addresses, but for texts."""
    if kind in PLAIN:
        return PLAIN[kind]
    if kind.endswith("]"):
        element, count = kind[:-1].split(" [")
        return ctype(element) * int(count)
    if kind == "const char *":
        return ctypes.c_char_p
    if "*" in kind:
        return ctypes.c_void_p
    return ctype(RECORDS.typedefs[kind])


class Struct(ctypes.Structure):
    """A struct of ng.h with its size filled in."""

    def __init__(self, **values):
        sized = {"size": ctypes.sizeof(self)} if "size" in dict(self._fields_) else {}
        super().__init__(**sized, **values)


def struct(name):
    return type(name, (Struct,), {"_fields_": [(f.name, ctype(f.type)) for f in RECORDS.structs[name]]})


Error, Shape, ContextDesc = struct("ng_error"), struct("ng_shape"), struct("ng_ctx_desc")


class Fault(Exception):
    """A negative status; its name and sentence."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Library:
    """libng.so with a context on one backend. Every array goes in and comes out as (dtype name, NumPy array of its bytes)."""

    def __init__(self, path, backend=os.environ.get("NG_TEST_BACKEND", "cpu"), flags=0):
        self.c = ctypes.CDLL(path)
        for function in RECORDS.functions:
            found = getattr(self.c, function.name)
            found.restype = ctype(function.returns)
            found.argtypes = [ctype(p.type) for p in function.params]
        self.context = ctypes.c_void_p()
        desc = ContextDesc(version=RECORDS.version, backend=backend.encode(), cache_dir=b"", flags=flags)
        self.call("ng_ctx_create", ctypes.addressof(desc), ctypes.addressof(self.context))

    def call(self, name, *arguments):
        """A function that ends in err; raises Fault."""
        error = Error()
        status = getattr(self.c, name)(*arguments, ctypes.addressof(error))
        if status < 0:
            raise Fault(self.c.ng_status_name(status).decode(), error.text.decode())
        return status

    def tensor(self, name, array):
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        shape, out = Shape(dtype=CODE_OF[name], ndim=array.ndim), ctypes.c_void_p()
        shape.dims[:array.ndim] = array.shape
        self.call("ng_tensor_create", self.context, ctypes.addressof(shape), ctypes.addressof(out))
        self.call("ng_tensor_put", out, array.ctypes.data, array.nbytes)
        return out

    def array(self, tensor):
        """What a dense tensor holds."""
        shape = Shape()
        self.c.ng_tensor_shape(tensor, ctypes.addressof(shape))
        name = NAME_OF[shape.dtype]
        out = np.empty(list(shape.dims[:shape.ndim]), formats.STORAGE[name])
        self.call("ng_tensor_get", tensor, out.ctypes.data, out.nbytes)
        return name, out

    def build(self, expression, operands):
        """(scope, node) of a text over x, y, z, or of what a function of (library, nodes) builds."""
        scope, nodes = self.c.ng_scope_create(self.context, 0), []
        for name, array in operands:
            tensor = self.tensor(name, array)
            nodes.append(self.c.ng_leaf(scope, tensor))
            self.c.ng_tensor_release(tensor)
        if callable(expression):
            return scope, expression(self.c, nodes)
        values = (ctypes.c_void_p * len(nodes))(*nodes)
        names = ",".join("xyz"[:len(nodes)])
        return scope, self.c.ng_parse(scope, expression.encode(), names.encode(), ctypes.addressof(values), len(nodes))

    def eval(self, expression, *operands):
        scope, node = self.build(expression, operands)
        node, out = ctypes.c_void_p(node), ctypes.c_void_p()
        try:
            self.call("ng_eval", self.context, None, ctypes.addressof(node), ctypes.addressof(out), 1)
            result = self.array(out)
            self.c.ng_tensor_release(out)
            return result
        finally:
            self.c.ng_scope_release(scope)
