"""Element types as NumPy sees them: how each is stored, what its values are, and rounding to it from numbers that are wider."""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings"))
import api  # noqa: E402

TYPES = {d.name: d for d in api.read_dtypes()}
STORAGE = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
           "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64,
           "e4m3": np.uint8, "e5m2": np.uint8}
FLOATS = [name for name, d in TYPES.items() if d.kind == "Float"]
NARROW = [name for name in FLOATS if name not in ("f32", "f64")]
INTEGERS = [name for name, d in TYPES.items() if d.kind in ("Int", "Uint")]
# Every longdouble here has 64 bits of mantissa: it holds i64, u64 and f64 exactly.
WIDE = np.longdouble
assert np.finfo(WIDE).nmant >= 63


def bias(name):
    return (1 << (TYPES[name].exponent - 1)) - 1


def top_exponent(name):
    """Of the greatest finite value: e4m3 uses the exponent that others keep for infinity."""
    return bias(name) + (name == "e4m3")


def least_exponent(name):
    """Of the smallest normal number."""
    return 1 - bias(name)


def largest(name):
    """The greatest finite value."""
    d = TYPES[name]
    if name == "e4m3":                      # all ones is NaN, the rest of the top exponent is numbers
        return WIDE(448)
    return np.ldexp(WIDE(2) - np.ldexp(WIDE(1), -d.mantissa), bias(name))


def decode(name, stored):
    """The values that are stored, exactly, in the type that arithmetic on them is done in."""
    if name not in NARROW:
        return stored
    if name == "f16":
        return stored.astype(np.float32)
    if name == "bf16":
        return np.left_shift(stored, 16, dtype=np.uint32, casting="unsafe").reshape(stored.shape).view(np.float32)
    d = TYPES[name]
    bits = stored.astype(np.int32)
    exponent, mantissa = bits >> d.mantissa & (1 << d.exponent) - 1, bits & (1 << d.mantissa) - 1
    value = np.where(exponent == 0, np.ldexp(mantissa.astype(np.float32), least_exponent(name) - d.mantissa),
                     np.ldexp((mantissa + (1 << d.mantissa)).astype(np.float32), exponent - bias(name) - d.mantissa))
    if name == "e4m3":
        value = np.where(bits & 127 == 127, np.float32(np.nan), value)
    else:
        value = np.where(exponent == (1 << d.exponent) - 1, np.where(mantissa == 0, np.float32(np.inf), np.float32(np.nan)), value)
    return np.where(bits >> 7 == 1, -value, value).astype(np.float32)


def unit(name, values):
    """The distance of neighbours of type name around each value."""
    magnitude = np.abs(values)
    finite = np.where(np.isfinite(magnitude) & (magnitude > 0), magnitude, 1).astype(WIDE)
    exponent = np.frexp(finite)[1] - 1
    lowest = least_exponent(name)
    exponent = np.where(magnitude == 0, lowest, exponent)
    return np.ldexp(WIDE(1), np.clip(exponent, lowest, top_exponent(name)) - TYPES[name].mantissa)


def rounded(name, values):
    """Values (longdouble) rounded once to the float type: to nearest even, denormals kept; 8-bit floats saturate (N2)."""
    values = np.asarray(values, WIDE)
    step = unit(name, values)
    near = np.where(np.isfinite(values), np.rint(values / step) * step, values)
    top = largest(name)
    if TYPES[name].bytes == 1:
        near = np.where(np.abs(near) > top, np.copysign(top, near), near)
    else:
        near = np.where(np.abs(near) > top, np.copysign(WIDE(np.inf), near), near)
    return near


def to_integer(name, values):
    """Floats as integers: half to even, saturated, NaN is 0 (N2)."""
    low, high = np.iinfo(STORAGE[name]).min, np.iinfo(STORAGE[name]).max
    values = np.rint(np.asarray(values, WIDE))
    inside = np.where(np.isnan(values), 0, np.clip(values, WIDE(low), WIDE(high)))
    # Through Python's integers: no cast of NumPy's is defined at the borders.
    return np.array([min(max(int(v), low), high) for v in inside.ravel()], STORAGE[name]).reshape(values.shape)


def convert(target, source, stored):
    """The contract's cast of stored values, as values of target's compute type (decode of what would be stored)."""
    values = decode(source, stored)
    if target == source:
        return values
    if target == "bool":
        return values != 0
    if target in FLOATS:
        compute = np.float64 if target == "f64" else np.float32
        return rounded(target, values.astype(WIDE)).astype(compute)
    if source in FLOATS:
        return to_integer(target, values)
    return values.astype(STORAGE[target])                       # wraps


def compute_type(name):
    return TYPES[name].compute


def edges(name):
    """Stored values of a type that hurt: zeros, ones, borders, what is not a number."""
    if name == "bool":
        return np.array([False, True])
    if name in INTEGERS:
        low, high = np.iinfo(STORAGE[name]).min, np.iinfo(STORAGE[name]).max
        near = [0, 1, 2, 3, 5, 7, 31, 63, 64, 100, low, low + 1, high, high - 1, high // 2, high // 2 + 1]
        return np.array(near + ([-1, -2, -3, -7, -100] if low < 0 else []), STORAGE[name])
    if TYPES[name].bytes == 1:
        return np.arange(256, dtype=np.uint8)
    d = TYPES[name]
    tiny, top, eps = np.ldexp(WIDE(1), least_exponent(name)), largest(name), np.ldexp(WIDE(1), -d.mantissa)
    positive = [0, tiny * eps, tiny * (1 - eps), tiny, eps, 0.25, 0.5, 1 - eps / 2, 1, 1 + eps, 1.5, 2, 2.5, 3, np.pi, 6, 10, 20.5, 100,
                1 / eps, 2 / eps + 2, top / 2, top, np.inf]
    values = np.array([sign * WIDE(v) for v in positive for sign in (1, -1)] + [WIDE(np.nan)])
    return encode(name, rounded(name, values))


def encode(name, values):
    """The stored form of values that the type holds exactly."""
    if name == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if TYPES[name].bytes == 1:
        table = decode(name, np.arange(256, dtype=np.uint8))
        codes = {(float(v), bool(np.signbit(v))): code for code, v in enumerate(table) if v == v}
        flat = [codes[float(v), bool(np.signbit(v))] if v == v else 0x7f for v in values.ravel()]
        return np.array(flat, np.uint8).reshape(values.shape)
    return values.astype(STORAGE[name])


def samples(name, count, random, span=8.0):
    """Stored values at random: half of moderate size, half of every size that the type has."""
    if name == "bool":
        return random.integers(0, 2, count).astype(bool)
    if name in INTEGERS:
        info = np.iinfo(STORAGE[name])
        return random.integers(info.min, info.max, count, dtype=STORAGE[name], endpoint=True)
    if TYPES[name].bytes == 1:
        return random.integers(0, 256, count, dtype=np.uint8)
    moderate = random.uniform(-span, span, count - count // 2).astype(WIDE)
    exponents = random.integers(least_exponent(name) - TYPES[name].mantissa, bias(name), count // 2)
    wild = np.ldexp(random.uniform(1, 2, count // 2).astype(WIDE), exponents) * random.choice([-1, 1], count // 2)
    return encode(name, rounded(name, np.concatenate([moderate, wild])))
