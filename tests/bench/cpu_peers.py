"""What a user of a CPU would pick instead, measured: numpy (and its BLAS), on the cases of ngtool bench cpu, under their names.

    python3 tests/bench/cpu_peers.py [--only TEXT] [--out FILE]

Columns and units are ngtool's. Data is random, results go to arrays that exist already where numpy can do that, the
median of several rounds counts. tests/bench/compare.py puts two such files side by side.
"""
import argparse
import csv
import statistics
import time

import numpy as np

rows = []


def median_us(call, target_s=0.02):
    """Median microseconds of one call; as many calls a round as fill the target."""
    call()
    start = time.perf_counter()
    call()
    count = max(1, int(target_s / max(time.perf_counter() - start, 1e-7)))
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        rounds.append((time.perf_counter() - start) / count * 1e6)
    return statistics.median(rounds)


def emit(case, work, unit, call, only):
    if only not in case:
        return
    us = median_us(call)
    rows.append(("cpu", case, "numpy", us, work / us / 1e3, unit))
    print(f"{'cpu':6s} {case:44s} {'numpy':18s} {us:10.2f} us {work / us / 1e3:10.1f} {unit}", flush=True)


def gelu_chain(x, y, out):
    np.add(np.multiply(0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x))), 1.1, out=out), 0.3, out=out)


def twenty(x, y, out):
    a = ((x + y) * x - y) * 0.5 + x
    b = ((a * y - 0.25) * x + y) * 0.125 - a
    c = (b * y + 0.75) * a - x
    np.add((c * 0.5 + b) * y - a, c, out=out)


def batchnorm(x, y, out):
    np.multiply(1 / np.sqrt(x.var(1, keepdims=True) + np.float32(0.001)), x - x.mean(1, keepdims=True), out=out)


def softmax(x, y, out):
    np.exp(x - x.max(1, keepdims=True), out=out)
    out /= out.sum(1, keepdims=True)


# name, call, how many arrays of the input's size cross the memory bus at least
KERNELS = [
    ("x+y", lambda x, y, out: np.add(x, y, out=out), 3),
    ("a*x+b", lambda x, y, out: np.add(np.multiply(x, 2.5, out=out), 0.5, out=out), 2),
    ("gelu_chain", gelu_chain, 2),
    ("20 operations", twenty, 3),
    ("batchnorm rows", batchnorm, 2),
    ("softmax rows", softmax, 2),
    ("column sums", lambda x, y, out: x.sum(0), 1),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="the cases whose name has this in it")
    parser.add_argument("--out", help="write the rows there")
    options = parser.parse_args()
    random = np.random.default_rng(1)
    print("# numpy", np.__version__)
    for name, call, arrays in KERNELS:
        for height, where in ((65536, "256MB"), (32, "L2")):
            if options.only not in f"{name} f32 {where}":
                continue
            x, y = (random.random((height, 1024), dtype=np.float32) for _ in range(2))
            out = np.empty_like(x)
            emit(f"{name} f32 {where}", x.nbytes * arrays, "GB/s", lambda: call(x, y, out), options.only)
    for letter, kind in (("s", np.float32), ("d", np.float64)):
        for n in (512, 1024):
            a, b = (random.standard_normal((n, n)).astype(kind) for _ in range(2))
            out = np.empty_like(a)
            emit(f"{letter}gemm {n}^3", 2 * n**3, "GFLOP/s", lambda: np.matmul(a, b, out=out), options.only)
    if options.out:
        with open(options.out, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow("section case peer us rate unit".split())
            writer.writerows(rows)


if __name__ == "__main__":
    main()
