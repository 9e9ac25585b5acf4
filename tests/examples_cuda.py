"""What ngtool tells of a CUDA device: which kernels are shipped, what bounds a step, what runs until kernels are compiled."""
import subprocess
import sys
import tempfile
from pathlib import Path

ngtool = str(Path(sys.argv[1]).resolve())
passed = failed = 0


def run(what, *command, expect=(), never=()):
    """One case: the command ends well, says these words, and none of those."""
    global passed, failed
    ran = subprocess.run([ngtool, *map(str, command), "--backend", "cuda"], capture_output=True, text=True, timeout=280)
    wrong = [word for word in expect if word not in ran.stdout] + [word for word in never if word in ran.stdout]
    good = ran.returncode == 0 and not wrong
    passed, failed = passed + good, failed + (not good)
    if not good:
        print(f"{what}: status {ran.returncode}, not said or said: {wrong}\n{ran.stdout[-3000:]}{ran.stderr[-2000:]}")


run("what bounds a fused step, and the interpreter's kernel", "explain", "x * 3 + 1", "x=f32[4096]",
    expect=["interpreted; bound by memory: bytes take", "instructions about", "interpret", "shipped"])
run("a step of many dear operations", "explain", "f16(sin(x) + cos(x) + tan(x) + exp(x) / x)", "x=f16[4096]", expect=["bound by arithmetic"])
run("the kernels of a scan", "explain", "scan(x, 0, sum)", "x=f32[4096]", expect=["basic_scan", "shipped"])
run("the kernels of a product", "explain", "x @ y", "x=f16[64,64]", "y=f16[64,64]", expect=["mma_", "shipped", "registers"])
run("lengths that are known when run", "explain", "argsort(x, 0)", "x=f32[-1]", expect=["basic_", "shipped"])
run("its JSON", "explain", "--json", "x @ y", "x=f16[64,64]", "y=f16[64,64]", expect=['"state": "shipped"', '"memory_us": ', '"arithmetic_us": '])
run("what is not to be compiled", "explain", "--interim", "softmax(x, 1)", "x=f32[8,64]", expect=["interpreted"], never=["being compiled"])
with tempfile.TemporaryDirectory() as folder:
    table = Path(folder) / "interim.csv"
    run("a suite by what runs until kernels are compiled", "bench", "ew", "--interim", "--quick", "--only", "sum_all fp16 128x32", "--csv", table,
        expect=["nothing compiled", "interim"])
    rows = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    good = len(rows) == 2 and rows[1].startswith("ew,sum_all fp16 128x32,interim,")
    passed, failed = passed + good, failed + (not good)
    if not good:
        print(f"the suite's table: {rows}")
run("how near a chain is to its limits", "bench", "chains", "--interim", "--quick", "--only", "chain 0", expect=["% of its ", "(bytes ", "us, instructions about "])
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
