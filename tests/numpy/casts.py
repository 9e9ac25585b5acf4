"""Every conversion of every type to every other, by the contract's rule N2: edges, then numbers of every size."""
import sys

import numpy as np

import formats
import ng
from verdicts import Cases, exactly

SAMPLES = 5000


def fault_of(library, source, target, stored):
    name, got = library.eval(lambda c, nodes: c.ng_cast(nodes[0], ng.CODE_OF[target]), (source, stored))
    if name != target:
        return f"gives {name}"
    values = formats.decode(source, stored)
    want = formats.convert(target, source, stored)
    got_values = formats.decode(target, got)
    return exactly(got_values, np.asarray(want, got_values.dtype), [values])


def halfway(source, target):
    """Stored values of source that lie on and beside the middle between neighbours of target."""
    if source not in ("f32", "f64") or target not in formats.NARROW:
        return formats.edges(source)[:0]
    width = formats.TYPES[target].bytes
    codes = np.arange(0, 1 << 8 * width, 1 if width == 1 else 37).astype(f"u{width}").view(formats.STORAGE[target])
    values = formats.decode(target, codes)
    values = values[np.isfinite(values)].astype(formats.WIDE)
    middles = values + np.copysign(formats.unit(target, values) / 2, values)
    middles = formats.encode(source, formats.rounded(source, middles))
    away = np.nextafter(middles, np.copysign(np.array(np.inf, middles.dtype), middles))
    return np.concatenate([middles, np.nextafter(middles, np.zeros_like(middles)), away])


def main():
    library, cases, random = ng.Library(sys.argv[1]), Cases(), np.random.default_rng(1)
    for source in formats.TYPES:
        for target in formats.TYPES:
            stored = np.concatenate([formats.edges(source), formats.samples(source, SAMPLES, random), halfway(source, target)])
            cases.attempt(f"{source} to {target}", lambda: fault_of(library, source, target, stored))
    cases.close()


if __name__ == "__main__":
    main()
