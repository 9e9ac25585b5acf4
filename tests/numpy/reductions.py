"""Every reduction and normalisation against its numpy column: over each axis, several, all; of 0, 1, few and many elements."""
import math
import sys

import numpy as np

import formats
import ng
import reference
from formats import WIDE
from verdicts import Cases, exactly

SHAPES = [(), (1,), (7,), (4099,), (5, 7, 3), (1, 1, 64), (129, 3), (3, 1000), (2, 3, 4, 5), (16, 127), (0,), (3, 0), (0, 4)]
PLACES = {"argmin", "argmax"}
NOT_OF_NOTHING = {"min", "max", "argmin", "argmax"}
INTEGER_RESULT = {"argmin": "i64", "argmax": "i64", "count_nonzero": "i64", "any": "bool", "all": "bool"}
# Of nothing, or of a shape without elements, the contract promises no number for these.
UNDEFINED_OF_NOTHING = {"mean", "var", "std", "logsumexp", "softmax", "log_softmax"}


def axes_of(word, rank):
    """What to reduce: every axis, pairs of neighbours and ends, all."""
    single = [(axis,) for axis in range(rank)]
    several = [tuple(range(rank))] + ([(0, rank - 1)] if rank > 2 else []) + ([(0, 1)] if rank > 2 else [])
    return single + several if word.kind == "NORM" else [None] + single + several


def result_type(word, name):
    kind, wide = formats.TYPES[name].kind, formats.TYPES[name].bytes >= 4
    if word.name in INTEGER_RESULT:
        return INTEGER_RESULT[word.name]
    if word.name in ("min", "max"):
        return formats.compute_type(name)
    if word.name in ("sum", "prod") and kind != "Float":
        return "u64" if kind == "Uint" else "i64"
    if kind != "Float":
        return "f64" if wide else "f32"
    return formats.compute_type(name)


def values_for(word, name, shape, random):
    """Stored values: all sizes where the result is exact, moderate ones where rounding is to be bounded."""
    count = int(np.prod(shape))
    if formats.TYPES[name].kind != "Float":
        small = word.kind != "FOLD" and name != "bool"
        stored = formats.samples(name, count, random)
        return (stored % 100 if small else stored).reshape(shape)
    if word.name in ("min", "max", "argmin", "argmax", "any", "all", "count_nonzero"):
        stored = formats.samples(name, count, random)
        if count and random.integers(0, 2):
            stored[random.integers(0, count)] = formats.encode(name, np.array([WIDE(random.choice([np.nan, 0]))]))[0]
        return stored.reshape(shape)
    values = random.uniform(0.5, 1.5, shape) if word.name == "prod" else random.normal(0.5, 2, shape)
    return formats.encode(name, formats.rounded(name, values))


def allowed(word, name, x, want, axis):
    """How far a float result may be off: derived from pairwise summation in the result's type."""
    eps = np.ldexp(WIDE(1), -formats.TYPES[name].mantissa)
    count = max(1, x.size // max(1, want.size) if word.kind != "NORM" else int(np.prod([x.shape[a] for a in axis])))
    steps = np.log2(WIDE(count)) + 2
    keep = {"axis": axis, "keepdims": True}
    if word.name == "sum":
        return steps * eps * np.sum(np.abs(x), **keep)
    if word.name == "mean":
        return (steps + 1) * eps * np.mean(np.abs(x), **keep)
    if word.name == "prod":
        return (count + 1) * eps * np.abs(want)
    if word.name == "norm":
        return (steps + 3) * eps * np.abs(want)
    if word.name in ("var", "std"):
        spread = (steps + 4) * eps * np.mean(np.square(np.abs(x) + np.abs(np.mean(x, **keep))), **keep)
        return spread if word.name == "var" else np.minimum(spread / np.where(want == 0, 1, want) + 2 * eps * want, np.sqrt(spread))
    top = np.max(np.abs(x), **keep) + 1
    if word.name == "softmax":
        return (steps + 8 + 2 * top) * eps * np.abs(want)
    return (steps + 8) * eps * (top + np.abs(want))                      # logsumexp, log_softmax


def fault_of(library, word, name, shape, axis, random):
    stored = values_for(word, name, shape, random)
    if axis is None:
        text = f"{word.name}(x)"
    else:
        text = f"{word.name}(x, {axis[0] if len(axis) == 1 else list(axis)})"
    reduced = range(len(shape)) if axis is None else axis
    empty = any(shape[a] == 0 for a in reduced)
    result = result_type(word, name)
    try:
        got_name, got = library.eval(text, (name, stored))
    except ng.Fault as fault:
        return None if empty and word.name in NOT_OF_NOTHING and fault.status == "NG_E_SHAPE" else str(fault)
    if empty and word.name in NOT_OF_NOTHING:
        return "of nothing gives a number, should be NG_E_SHAPE"
    if got_name != result:
        return f"gives {got_name}, should be {result}"
    kept = tuple(1 if a in reduced else e for a, e in enumerate(shape))
    final = shape if word.kind == "NORM" else () if axis is None else kept
    if got.shape != final:
        return f"{text} of {shape} has shape {got.shape}, should be {final}"
    if 0 in shape and word.name in UNDEFINED_OF_NOTHING:
        return None
    values, rest = formats.decode(name, stored), [a for a in range(len(shape)) if a not in reduced]
    along = axis[0] if axis and len(axis) == 1 else tuple(reduced)
    if word.name in PLACES:
        want = reference.column(word, [values.transpose([*rest, *reduced]).reshape([shape[a] for a in rest] + [math.prod(shape[a] for a in reduced)])],
                                len(rest))
        return exactly(got, np.asarray(want).astype(formats.STORAGE[result]).reshape(final), signs=False)
    if result not in ("f32", "f64") or word.name in ("min", "max"):
        want = reference.column(word, [values], along)
        return exactly(got, np.asarray(want).astype(formats.STORAGE[result]).reshape(final), signs=False)
    x = formats.convert(result, name, stored).astype(WIDE)
    want = wide_column(word, x, along).reshape(final if word.kind == "NORM" else kept)
    if 0 in shape:
        return exactly(got, want.astype(got.dtype).reshape(final))
    far = np.abs(got.reshape(want.shape).astype(WIDE) - want) / (allowed(word, result, x, want, tuple(reduced)) + formats.unit(result, want))
    return f"{text} of {shape}: {float(np.max(far)):.3g} times what rounding allows" if not (far <= 1).all() else None


def wide_column(word, x, along):
    """A column over several axes at once: ufunc.reduce takes a tuple only where the operation commutes by name."""
    if isinstance(along, int) or "logaddexp.reduce" not in word.numpy:
        return np.asarray(reference.column(word, [x], along), WIDE)
    rest = [a for a in range(x.ndim) if a not in along]
    flat = x.transpose(rest + list(along)).reshape([x.shape[a] for a in rest] + [-1])
    out = np.asarray(reference.column(word, [flat], flat.ndim - 1), WIDE)
    if word.kind != "NORM":
        return out
    order = rest + list(along)
    return out.reshape([x.shape[a] for a in order]).transpose(np.argsort(order))


def main():
    library, cases = ng.Library(sys.argv[1]), Cases()
    only = set(sys.argv[2:])
    for number, word in enumerate(w for w in ng.RECORDS.words if w.kind in ("FOLD", "STAT", "NORM")):
        if only and word.name not in only:
            continue
        random = np.random.default_rng(number)
        for name in formats.TYPES:
            for shape in SHAPES:
                for axis in axes_of(word, len(shape)):
                    if axis == () and word.kind == "NORM":
                        continue
                    cases.attempt(f"{word.name}, {name}, {shape}, {axis}",
                                  lambda: fault_of(library, word, name, shape, None if axis == () else axis, random))
    cases.close()


if __name__ == "__main__":
    main()
