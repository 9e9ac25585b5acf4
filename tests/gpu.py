"""What only a GPU can say: tests of a build's kernels, the contract's tests, users' programs and random ones on it, side by side.

    python3 tests/gpu.py [BUILD] [--sanitize] [--only TEXT..] [--skip TEXT..] [--jobs N] [--logs FOLDER] [--list]

Run it where a GPU is; its driver and NVRTC are found as libng finds them. BUILD is build/ or a copy of what a job needs of it (--list
names jobs and their programs), so that it may have been built elsewhere; ew_gpu is built when asked for (ninja tests/bench/ew_gpu).
--sanitize adds compute-sanitizer's jobs, on small problems. Each job is named as it ends; one that fails, or takes longer than --seconds,
with the end of what it said. The last line counts all cases.
"""
import argparse
import ctypes
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import count

KERNELS = ["mma_gpu_test", "gpu_test", "basic_gpu_test", "interpreter_gpu_test", "f32_gpu_test", "operand_gpu_test", "list_gpu_test", "capture_test", "tuning_test"]
CONTRACT = ["derivatives", "evaluation", "exchange", "extremes", "lengths", "movement", "numbers", "operands", "plans", "pressure", "programs", "results", "sharing", "stock", "vast"]
OF_MEMORY = ["pressure", "vast"]     # of these, those that take most of a device's memory
OF_TEXTS = ["derivatives", "evaluation", "stock"]    # those that racecheck is not done with in four minutes
OF_PROCESSOR = "P2: with one thread*,P2: two runs at once*,T4: every hook*,T4: done comes on whatever*"      # cases of these, as tests/contract/meson.build has them
NUMPY = ["casts", "maps", "promotions", "reductions"]      # with a Python that has NumPy, and build/lib/libng.so
PARTS = 6                       # of what takes longest
SHARED = "products*"            # cases of gemm_gpu_test whose work processes share by NG_TEST_PART
OF_PTX = ["mma_gpu_test", "operand_gpu_test"]                   # once more, all of it compiled by the driver
FORCED = {"CUDA_FORCE_PTX_JIT": "1"}
BASIC = ["copy*,fill*,scan*", "segment*,argsort*", "put*,workspaces*", "pool*", "matmul*", "conv*"]     # cases of basic_gpu_test for a process each
SMALL = {"NG_TEST_SMALL": "1"}


def has_ew(build):
    return (build / "tests/bench/ew_gpu").exists()


def python_with_numpy():
    """Another Python may stand before the one that has it on the path."""
    pythons = [sys.executable, "/usr/bin/python3"]
    return next((python for python in pythons if subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode == 0), sys.executable)


# racecheck, which takes longest, looks at every twentieth of these on small problems: three to four minutes of 16 processes; of all it would be an hour.
RACED = [{"NG_TEST_PART": f"{20 * part}/640"} for part in range(32)]


def shared(parts):
    """The environments of as many processes, each of which does a part of a test's work."""
    return [{"NG_TEST_PART": f"{part}/{parts}"} for part in range(parts)]


def jobs(build):
    """(name, words, environment) of each, the longest first."""
    out = [(f"gemm_gpu_test {part}", [build / "tests/backend/gemm_gpu_test", f"-tc={SHARED}"], environment) for part, environment in enumerate(shared(PARTS))]
    out += [("gemm_gpu_test others", [build / "tests/backend/gemm_gpu_test", f"-tce={SHARED}"], {})]
    out += [(name, [build / "tests/backend" / name], {}) for name in KERNELS]
    out += [(f"{name} ptx", [build / "tests/backend" / name], FORCED) for name in OF_PTX]
    out += [(f"random {seed}", [build / "tests/random/random_programs", "--backend", "cuda", "--count", "150", "--seed", str(seed)], {}) for seed in (71, 72)]
    out += [(f"contract {name}", [build / f"tests/contract/{name}_test", f"-tce={OF_PROCESSOR}"], {"NG_TEST_BACKEND": "cuda"}) for name in CONTRACT]
    python = python_with_numpy()
    out += [(f"numpy {name}", [python, "-B", Path(__file__).parent / f"numpy/{name}.py", build / "lib/libng.so"], {"NG_TEST_BACKEND": "cuda"}) for name in NUMPY]
    out += [(path.name.replace("_", " ", 1), [path, "cuda"], {}) for path in sorted((build / "tests/programs").glob("program_*")) if path.is_file() and not path.suffix]
    out += [("ngtool tune", [sys.executable, "-B", Path(__file__).parent / "tuned.py", build / "examples/ngtool"], {})]
    if has_ew(build):
        out += [("ew", [build / "tests/bench/ew_gpu", "--check", "--megabytes", "1"], {})]
    return out


def sanitized(build):
    """The same of compute-sanitizer's: each tool on what it looks at."""
    def job(tool, name, *words, label="", environment=SMALL):
        return f"{tool} {name}{label}", ["compute-sanitizer", f"--tool={tool}", "--error-exitcode=9", build / f"tests/{name}", *words], environment
    out = [job("racecheck", "backend/gemm_gpu_test", f"-tc={SHARED}", label=f" {part}", environment=SMALL | environment) for part, environment in enumerate(RACED)]
    out += [job("racecheck", "backend/basic_gpu_test", f"-tc={cases}", label=f" {cases}") for cases in BASIC]
    out += [job("racecheck", "backend/basic_gpu_test", f"-tce={','.join(BASIC)}", label=" others")]
    for tool in ("memcheck", "synccheck"):
        out += [job(tool, "backend/gemm_gpu_test", f"-tc={SHARED}", label=f" {part}", environment=SMALL | environment) for part, environment in enumerate(shared(PARTS))]
        out += [job(tool, "backend/gemm_gpu_test", f"-tce={SHARED}", label=" others")]
    out += [job("memcheck", f"backend/{name}") for name in ("mma_gpu_test", "basic_gpu_test", "interpreter_gpu_test", "operand_gpu_test", "list_gpu_test")]
    out += [job("racecheck", f"backend/{name}") for name in ("mma_gpu_test", "operand_gpu_test", "interpreter_gpu_test")]
    out += [job("racecheck", "backend/list_gpu_test", label=f" {part}", environment=SMALL | environment) for part, environment in enumerate(shared(16))]
    out += [job("synccheck", "backend/mma_gpu_test")]
    out += [job("initcheck", "backend/gemm_gpu_test", f"-tc={SHARED}", label=f" {part}", environment=SMALL | environment) for part, environment in enumerate(RACED)]
    out += [job("initcheck", "backend/gemm_gpu_test", f"-tce={SHARED}", label=" others")]
    out += [job("initcheck", f"backend/{name}") for name in ("mma_gpu_test", "basic_gpu_test", "interpreter_gpu_test", "operand_gpu_test", "f32_gpu_test")]
    out += [job("initcheck", "backend/list_gpu_test", label=f" {part}", environment=SMALL | environment) for part, environment in enumerate(shared(16))]
    for tool in ("memcheck", "initcheck", "racecheck"):
        out += [job(tool, f"contract/{name}_test", f"-tce={OF_PROCESSOR}", environment={"NG_TEST_BACKEND": "cuda"})
                for name in CONTRACT if name not in OF_MEMORY + (OF_TEXTS if tool == "racecheck" else [])]
        out += [job(tool, "random/random_programs", "--backend", "cuda", "--count", "40", "--seed", str(seed), label=f" {seed}", environment={}) for seed in (73, 74)]
    for part in range(PARTS if has_ew(build) else 0):
        words = ["--check", "--megabytes", "1", "--part", f"{part}/{PARTS}"]
        out += [job(tool, "bench/ew_gpu", *words, label=f" {part}") for tool in ("memcheck", "initcheck")]
        out += [job("racecheck", "bench/ew_gpu", *words, "--only", "norm rows", "--only", "softmax rows", "--only", "sum", label=f" {part}")]
    return out


def run(job, seconds, logs):
    """(name, seconds, (passed, failed, skipped), what it said)."""
    name, words, environment = job
    begin = time.monotonic()
    try:
        ran = subprocess.run([str(word) for word in words], env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds)
        said, status = ran.stdout, ran.returncode
    except subprocess.TimeoutExpired as late:
        said, status = (late.stdout or b"").decode(errors="replace") + f"\nstill running after {seconds} s", 1
    except OSError as why:
        said, status = str(why), 1
    if logs:
        (logs / (name.replace("/", "_").replace(" ", "_") + ".txt")).write_text(said)
    passed, failed, skipped = count.counts({"stdout": said, "result": "OK" if status == 0 else f"ended with {status}"})
    is_skipped = "skipped:" in said
    if passed + failed == 0 and not is_skipped:
        failed = 1                       # a filter that met no case has looked at nothing
    return name, time.monotonic() - begin, (passed, failed, skipped if is_skipped else 0), said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build", type=Path)
    parser.add_argument("--sanitize", action="store_true"), parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", nargs="+", default=[""]), parser.add_argument("--skip", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count()), parser.add_argument("--seconds", type=int, default=540), parser.add_argument("--logs", type=Path)
    given = parser.parse_args()
    wanted = (sanitized(given.build) if given.sanitize else []) + jobs(given.build)
    wanted = [job for job in wanted if any(text in job[0] for text in given.only) and not any(text in job[0] for text in given.skip)]
    if given.list:
        for name, words, environment in wanted:
            print(f"{name}: {' '.join([f'{key}={value}' for key, value in environment.items()] + [str(word) for word in words])}")
        return 0
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as why:
        print(f"skipped: {why}\n0 passed, 0 failed, {len(wanted)} skipped")
        return 0
    if given.logs:
        given.logs.mkdir(parents=True, exist_ok=True)
    total = [0, 0, 0]
    with ThreadPoolExecutor(given.jobs) as pool:
        for ended in as_completed([pool.submit(run, job, given.seconds, given.logs) for job in wanted]):
            name, seconds, counts, said = ended.result()
            total = [a + b for a, b in zip(total, counts)]
            print(f"{name}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped, {seconds:.1f} s" + (f"\n{said[-1500:]}" if counts[1] else ""), flush=True)
    if not wanted:
        total[1] = 1
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
