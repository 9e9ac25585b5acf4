"""What PyTorch takes for the cases of ngtool bench ew, and what ngtool takes, by turns on one GPU.

    python3 tests/bench/gpu_peers.py NGTOOL [--only TEXT] [--eager] [--csv FILE]

PyTorch's kernels are launched from a captured graph, so that its calls cost it nothing; ngtool's programs by ng_prog_run. Data
are random and rotate as ngtool's do. --eager times each operation by itself too. Percent are of a copy of 1 GiB; a ratio is
PyTorch's best by ours: above 1, ours is faster.
"""
import argparse
import csv
import math
import os
import statistics
import subprocess
import tempfile

import torch

L2_BYTES = 60 << 20
ROUNDS = 5
BATCH_US = 5000
SHAPES = [(1 << 20, 32), (262144, 256), (65536, 1024), (16384, 8192), (1024, 65536), (64, 1 << 20)]
SHAPES_F32 = [(65536, 1024), (64, 1 << 20)]


def normalised(a, axis):
    return (a.var(axis, unbiased=False, keepdim=True) + 1e-3).rsqrt() * (a - a.mean(axis, keepdim=True))


EXPRESSIONS = {                         # and how often the array crosses the memory bus at least
    "variance": (lambda a: ((a - a.mean(1, keepdim=True)) ** 2).mean(1, keepdim=True), 1),
    "batchnorm": (lambda a: normalised(a, 1), 2),
    "batchnorm_axis0": (lambda a: normalised(a, 0), 2),
    "softmax": (lambda a: torch.softmax(a, 1), 2),
    "gelu_chain": (lambda a: 0.5 * a * (1 + torch.tanh(0.79788456 * (a + 0.044715 * a * a * a))) * 1.1 + 0.3, 2),
    "sum_all": (lambda a: a.sum(), 1),
    "sum_axis0": (lambda a: a.sum(0), 1),
}


def event_us(work):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3


def graph_us(function, buffers):
    """Median microseconds of a call, of many that a graph holds."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            for b in buffers:
                function(b)
    torch.cuda.synchronize()
    once = event_us(lambda: [function(b) for b in buffers]) / len(buffers)
    turns = max(1, int(BATCH_US / max(once, 1)) // len(buffers))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(turns):
            for b in buffers:
                function(b)
    graph.replay()
    torch.cuda.synchronize()
    return statistics.median(event_us(graph.replay) for _ in range(ROUNDS)) / (turns * len(buffers))


def copy_rate():
    """GB/s of a copy of 1 GiB, read and written bytes counted."""
    a = torch.rand(1 << 28, device="cuda")
    b = torch.empty_like(a)
    b.copy_(a)
    us = statistics.median(event_us(lambda: [b.copy_(a) for _ in range(4)]) / 4 for _ in range(ROUNDS))
    return 2 * a.numel() * 4 / us / 1e3


def ours(ngtool, only):
    """{case: microseconds} of ngtool bench ew."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ew.csv")
        words = [ngtool, "bench", "ew", "--csv", path] + (["--only", only] if only else [])
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        with open(path, newline="", encoding="utf-8") as file:
            return {row["case"]: float(row["us"]) for row in csv.DictReader(file)}


def cases(only):
    for dtype, name, shapes in ((torch.float16, "fp16", SHAPES), (torch.float32, "fp32", SHAPES_F32)):
        for rows, columns in shapes:
            wanted = [e for e in EXPRESSIONS if only in f"{e} {name} {rows}x{columns}"]
            if not wanted:
                continue
            count = max(1, -(-2 * L2_BYTES // (rows * columns * dtype.itemsize)))
            buffers = [torch.rand(rows, columns, device="cuda").to(dtype) for _ in range(count)]
            for expression in wanted:
                yield expression, f"{expression} {name} {rows}x{columns}", buffers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ngtool")
    parser.add_argument("--only", default="")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--csv")
    arguments = parser.parse_args()
    rate, mine, rows, ratios = copy_rate(), ours(arguments.ngtool, arguments.only), [], []
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}; copy: {rate:.0f} GB/s")
    for expression, case, buffers in cases(arguments.only):
        function, passes = EXPRESSIONS[expression]
        torch._dynamo.reset()
        peers = {"torch.compile": graph_us(torch.compile(function, dynamic=False), buffers)}
        if arguments.eager:
            peers["torch eager"] = graph_us(function, buffers)
        best, us = min(peers.values()), mine[case]
        share = buffers[0].numel() * buffers[0].element_size() * passes / 1e3 / rate * 100
        ratios.append(best / us)
        rows += [("ew", case, "ng", us)] + [("ew", case, peer, t) for peer, t in peers.items()]
        print(f"{case:36s} ng {us:8.2f} us {share / us:5.1f} %   torch {best:8.2f} us {share / best:5.1f} %   {best / us:5.2f}x", flush=True)
    print(f"{len(ratios)} cases: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}x, worst {min(ratios):.2f}x")
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerows([("section", "case", "peer", "us"), *rows])


if __name__ == "__main__":
    main()
