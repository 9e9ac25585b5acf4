"""Two operands of any two types: the type of the result and its values, by the contract's rule N4."""
import sys

import numpy as np

import formats
import ng
from verdicts import Cases, exactly


def common(a, b):
    """The type that a + b is done in, or None where it is an error."""
    if a == b == "bool":
        return "i32"
    kinds = {formats.TYPES[t].kind for t in (a, b)}
    if "Float" in kinds:
        return "f64" if "f64" in (a, b) else "f32"
    if "bool" in (a, b):
        return a if b == "bool" else b
    if kinds == {"Int", "Uint"}:
        signed, unsigned = (a, b) if formats.TYPES[a].kind == "Int" else (b, a)
        bytes_needed = max(formats.TYPES[signed].bytes, 2 * formats.TYPES[unsigned].bytes)
        return f"i{8 * bytes_needed}" if bytes_needed <= 8 else None
    return max((a, b), key=lambda t: formats.TYPES[t].bytes)


def fault_of(library, a, b, random):
    target = common(a, b)
    x, y = (np.concatenate([formats.edges(t), formats.samples(t, 64, random)]) for t in (a, b))
    x, y = x.reshape(-1, 1), y.reshape(1, -1)
    try:
        name, got = library.eval("x + y", (a, x), (b, y))
    except ng.Fault as fault:
        return None if target is None and fault.status == "NG_E_DTYPE" else str(fault)
    if name != target:
        return f"gives {name}, should be {target or 'NG_E_DTYPE'}"
    values = [formats.convert(target, t, v) for t, v in ((a, x), (b, y))]
    return exactly(got, values[0] + values[1], values)


# A number in a text is weak: it takes the type of what stands beside it (N4).
WEAK = [("i8", "x + 1", "i8"), ("u8", "x * 2", "u8"), ("i64", "x + 1", "i64"), ("i32", "x + 0.5", "f32"), ("u8", "x * 0.5", "f32"),
        ("f16", "x * 2", "f32"), ("bf16", "x + 0.5", "f32"), ("f32", "x + 1", "f32"), ("f64", "x * 0.1", "f64"), ("f32", "x * 0.1", "f32"),
        ("i32", "x / 2", "f64"), ("i16", "x / 2", "f32"), ("u8", "x / 2", "f32"), ("i32", "x // 2", "i32"), ("i32", "x % 3", "i32"),
        ("bool", "x + 1", "i32"), ("f32", "x < 1", "bool"), ("f16", "f16(x * 2)", "f16"), ("f32", "x ** 2", "f32"), ("i8", "-x", "i8")]


def weak_fault(library, name, text, target):
    got = library.eval(text, (name, formats.edges(name)))[0]
    return None if got == target else f"gives {got}, should be {target}"


def main():
    library, cases, random = ng.Library(sys.argv[1]), Cases(), np.random.default_rng(2)
    for a in formats.TYPES:
        for b in formats.TYPES:
            cases.attempt(f"{a} + {b}", lambda: fault_of(library, a, b, random))
    for name, text, target in WEAK:
        cases.attempt(f"{text} of {name}", lambda: weak_fault(library, name, text, target))
    cases.close()


if __name__ == "__main__":
    main()
