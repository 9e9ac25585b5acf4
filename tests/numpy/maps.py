"""Every element-wise operation against its numpy column: edges with each other first, then numbers of every size, then broadcasts."""
import sys

import numpy as np

import formats
import ng
import reference
from formats import WIDE
from verdicts import Cases, exactly, within

SAMPLES = 6000
# NumPy's choice between 0.0 and -0.0 is not a rule that it keeps from one machine to the next.
ANY_ZERO = {"maximum", "minimum", "fmax", "fmin", "clip", "relu", "relu6", "heaviside"}
# Near a zero of the result that no operand shows, the unit is that of the greatest operand.
CANCELS = {"logaddexp"}


def domain_types(word):
    """Storage types that a row takes."""
    if word.domain == "Bits":
        return ["bool", *formats.INTEGERS]
    return list(formats.TYPES)


def computed_in(word, name):
    """The type that a row computes in, of operands of one type (contract N1, N3, and Domain of jit/ops.h)."""
    kind = formats.TYPES[name].kind
    if word.domain == "Logic":
        return "bool"
    if word.domain == "Any" and name == "bool":
        return "i32"
    if word.domain == "Real" and kind != "Float":
        return "f64" if formats.TYPES[name].bytes >= 4 else "f32"
    return formats.compute_type(name)


def promoted(target, name, stored):
    """Operands as a row sees them."""
    if target == "bool":
        return formats.decode(name, stored) != 0
    if formats.TYPES[name].kind != "Float" and target in ("f32", "f64"):
        return formats.convert(target, name, stored)
    return formats.decode(name, stored).astype(formats.STORAGE[target])


def compare(word, name, stored, got):
    """A fault or None: the result (dtype name, array) of a row for stored operands of one type."""
    compute = computed_in(word, name)
    values = [promoted(compute, name, s) for s in stored]
    if word.name == "where":
        values[0] = formats.decode(name, stored[0]) != 0
    result = "bool" if word.result == "Bool" else compute
    if got[0] != result:
        return f"gives {got[0]}, should be {result}"
    if word.ulp == 0 or compute not in ("f32", "f64"):
        want = np.asarray(reference.column(word, values)).astype(formats.STORAGE[result])
        return exactly(got[1], want, values, word.name not in ANY_ZERO)
    wide = [v.astype(WIDE) for v in values]
    bound = word.ulp + (2 if compute == "f64" and any(f in word.numpy for f in reference.DOUBLE_ONLY) else 0)
    scale = np.max([np.abs(np.broadcast_to(w, got[1].shape)) for w in wide], axis=0) if word.name in CANCELS else None
    return within(compute, got[1], reference.column(word, wide), bound, values, scale)


def grid(values, arity):
    """Every value with every other: an operand an axis, so that this broadcasts too."""
    return [values.reshape([-1 if axis == i else 1 for axis in range(arity)]) for i in range(arity)]


def edge_operands(word, name):
    edges = formats.edges(name)
    if formats.TYPES[name].bytes == 1 and word.arity == 3 and name in formats.FLOATS:
        edges = edges[::7]
    elif word.arity == 3:
        edges = edges[::3]
    return grid(edges, word.arity)


def random_operands(word, name, random):
    return [formats.samples(name, SAMPLES, random) for _ in range(word.arity)]


def strided(word, name, random):
    """Rank 3 operands of which one repeats, one is a row, one a column."""
    shapes = [(6, 5, 17), (5, 1), (17,)][:word.arity]
    return [formats.samples(name, int(np.prod(shape)), random).reshape(shape) for shape in shapes]


def text_of(word, operands="xyz"):
    return f"{word.name}({', '.join(operands[:word.arity])})"


def case(library, word, name, kind, random):
    if kind == "edges":
        stored = edge_operands(word, name)
    elif kind == "random":
        stored = random_operands(word, name, random)
    else:
        stored = strided(word, name, random)
    pairs = [(name, s) for s in stored]
    if word.name == "where":
        condition = formats.decode(name, stored[0]) != 0
        pairs[0] = ("bool", condition)
    if kind == "sliced":                          # the first operand backwards, every other of its last axis
        got = library.eval(text_of(word, ["x[:, ::-1, ::2]", "y", "z[::2]"]), *pairs)
        stored = [s[:, ::-1, ::2] if i == 0 else s[::2] if i == 2 else s for i, s in enumerate(stored)]
        return compare(word, name, stored, got)
    return compare(word, name, stored, library.eval(text_of(word), *pairs))


def refuses(library, word, name):
    """Bits of floats are an error with a sentence."""
    operands = [(name, formats.edges(name)) for _ in range(word.arity)]
    try:
        library.eval(text_of(word), *operands)
    except ng.Fault as fault:
        return None if fault.status == "NG_E_DTYPE" else str(fault)
    return "takes floats, should be NG_E_DTYPE"


def main():
    library, cases = ng.Library(sys.argv[1]), Cases()
    only = set(sys.argv[2:])
    for number, word in enumerate(w for w in ng.RECORDS.words if w.kind == "MAP"):
        if only and word.name not in only:
            continue
        random = np.random.default_rng(number)
        for name in domain_types(word):
            kinds = ["edges"] + (["random", "broadcast"] if name not in formats.NARROW else [])
            kinds += ["sliced"] if name in ("f32", "f64", "i32", "u8") else []
            for kind in kinds:
                if kind == "random" and word.name == "fma" and name not in ("f32",):
                    continue                      # exact fractions are slow; its edges are thorough
                cases.attempt(f"{word.name}, {name}, {kind}", lambda: case(library, word, name, kind, random))
        if word.domain == "Bits":
            cases.attempt(f"{word.name} of f32", lambda: refuses(library, word, "f32"))
    cases.close()


if __name__ == "__main__":
    main()
