"""The numpy column of ops.def made to run: in the type itself for exact rows, in longdouble for those with a bound."""
import ast
import math
from fractions import Fraction

import numpy as np

import formats
from formats import WIDE


def as_wide(text):
    """A number of a column with all the digits of longdouble."""
    return WIDE(text)


class Widen(ast.NodeTransformer):
    """Makes literals with a point, and np.pi, as wide as the operands; whole numbers stay Python's."""

    def __init__(self, source):
        self.source = source

    def visit_Constant(self, node):
        if not isinstance(node.value, float):
            return node
        call = ast.Call(ast.Name("wide", ast.Load()), [ast.Constant(ast.get_source_segment(self.source, node))], [])
        return ast.copy_location(call, node)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and (node.value.id, node.attr) == ("np", "pi"):
            return ast.copy_location(ast.Name("pi", ast.Load()), node)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        scalars = [ast.Call(ast.Name("wide", ast.Load()), [a], []) if isinstance(a, ast.Constant) and isinstance(a.value, int) else a
                   for a in node.args]
        root = isinstance(node.func, ast.Attribute) and node.func.attr in ("sqrt", "log", "exp")
        return ast.copy_location(ast.Call(node.func, scalars, node.keywords), node) if root else node


def special(function, slope):
    """A function of math that knows f64 alone, for longdouble: its value beside x and the way from there by its slope."""
    def wide(x):
        x = np.asarray(x, WIDE)
        near = x.astype(np.float64)
        value = np.vectorize(function, [np.float64])(near)
        rest = np.where(np.isfinite(x), x - near, 0)
        return value + np.where(np.isfinite(near), slope(near.astype(WIDE)), 0) * rest
    return wide


PI = WIDE("3.14159265358979323846264338327950288")
erf = special(math.erf, lambda x: 2 / np.sqrt(PI) * np.exp(-x * x))
erfc = special(math.erfc, lambda x: -2 / np.sqrt(PI) * np.exp(-x * x))
# glibc's own error in f64, which such a reference has: its rows get that much more.
DOUBLE_ONLY = ("erf(", "erfc(")


class IntegerNumpy:
    """NumPy where its integers do what the contract says they do not: raise for negative powers, shift by negative counts."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def power(x, y):
        odd = np.where(y % 2 != 0, x, 1)
        return np.where(y >= 0, np.power(x, np.maximum(y, 0)), np.where(x == 1, 1, np.where(x == -1, odd, 0))).astype(x.dtype)

    @staticmethod
    def right_shift(x, y):
        return np.where(y < 0, 0, np.right_shift(x, np.maximum(y, 0))).astype(x.dtype)

    # Whole numbers are rounded already; NumPy would answer in floats.
    @staticmethod
    def floor(x):
        return x

    ceil = trunc = rint = floor


class BoolNumpy:
    """NumPy where a bool is one bit: moved by one it is gone."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def left_shift(x, y):
        return x & ~y

    right_shift = left_shift


def fused(x, y, z):
    """x * y + z rounded once, from exact fractions."""
    x, y, z = np.broadcast_arrays(x, y, z)
    name = "f64" if x.dtype == np.float64 else "f32"
    plain = (x * y + z).astype(x.dtype)
    if name == "f32":                              # a product of floats has 48 bits; what it loses to z is kept beside it
        product, addend = x.astype(WIDE) * y, z.astype(WIDE)
        total = product + addend
        back = total - product
        rest = (product - (total - back)) + (addend - back)
        settled = np.where(rest == 0, total, np.nextafter(total, np.copysign(WIDE(np.inf), rest)))
        # The neighbour breaks ties on the right side; it is exact enough for all else.
        return np.where(np.isfinite(total), formats.rounded("f32", settled), plain).astype(x.dtype)
    out = plain.copy()
    for at in np.ndindex(x.shape):
        values = [v[at] for v in (x, y, z)]
        if all(map(math.isfinite, values)):
            a, b, c = map(Fraction, map(float, values))
            exact = a * b + c
            if exact:
                try:
                    out[at] = float(exact)
                except OverflowError:
                    out[at] = math.inf if exact > 0 else -math.inf
    return out


def column(word, operands, axis=None):
    """A row's numpy column of operands (NumPy arrays of the type that it computes in)."""
    names = dict(zip("xyz", operands), axis=axis, erf=erf, erfc=erfc, wide=as_wide, pi=PI, np=np)
    text = word.numpy
    if operands[0].dtype == WIDE:
        tree = ast.fix_missing_locations(Widen(text).visit(ast.parse(text, mode="eval")))
        return eval(compile(tree, word.name, "eval"), names)      # noqa: S307 - our own table
    if operands[-1].dtype.kind in "iu":
        names["np"] = IntegerNumpy()
    if operands[-1].dtype == bool:
        names["np"] = BoolNumpy()
    if word.name == "fma":
        return fused(*operands)
    return eval(text, names)                                      # noqa: S307
