"""The example programs do what their help says: digits learns, saves and loads; ngtool answers each of its commands."""
import subprocess
import sys
import tempfile
from pathlib import Path

digits, ngtool, hello = (str(Path(p).resolve()) for p in sys.argv[1:4])
passed = failed = 0


def run(what, *command, expect=(), says="", status=0):
    """One case: the command ends with this status and says these words, those of `says` where faults are told."""
    global passed, failed
    ran = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=280)
    silent = [word for word in expect if word not in ran.stdout]
    silent += [says] if says not in ran.stderr else []
    good = (ran.returncode == 0) == (status == 0) and not silent and ran.returncode >= 0
    passed, failed = passed + good, failed + (not good)
    if not good:
        print(f"{what}: status {ran.returncode}, not said: {silent}\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")


with tempfile.TemporaryDirectory() as folder:
    run("hello", hello)
    saved = Path(folder) / "digits.ng"
    run("digits learns", digits, "--backend", "cpu", "--save", saved, "--at-least", "95")
    run("digits loads what it saved", digits, "--backend", "cpu", "--load", saved, "--at-least", "95")
    images = (Path(digits).parent / "digits.txt").read_text().splitlines()
    many = Path(folder) / "many.txt"
    many.write_text("# " + 300 * "x" + "\n" + "\n".join([line for line in images if line[0] != "#"] * 7) + "\n")
    run("digits reads any number of images, below a long comment", digits, "--backend", "cpu", "--load", saved, "--data", many, "--at-least", "95")
    saved.write_bytes(saved.read_bytes()[:-100])
    run("digits refuses half a file", digits, "--backend", "cpu", "--load", saved, status=1)
    array = Path(folder) / "y.npy"
    run("ngtool help", ngtool, "help", expect=["ngtool eval EXPR"])
    run("ngtool refuses an unknown word", ngtool, "no-such-command", status=1)
    run("ngtool version", ngtool, "version", expect=["libng 1."])
    run("ngtool devices", ngtool, "devices", expect=["cpu"])
    run("ngtool eval", ngtool, "eval", "x * 2 + 1", "x=20.5", "--backend", "cpu", expect=["42"])
    run("ngtool eval into a file", ngtool, "eval", "sum(x, 1)", "x=f32[3,5]", "-o", array, "--backend", "cpu")
    run("ngtool eval of that file", ngtool, "eval", "count_nonzero(y >= 0)", f"y={array}", "--backend", "cpu", expect=["3"])
    run("ngtool eval of a file that is not there", ngtool, "eval", "x", "x=no.npy", "--backend", "cpu", says="no file of that name", status=1)
    run("ngtool eval of a folder", ngtool, "eval", "x", f"x={folder}", "--backend", "cpu", says="cannot be read: Is a directory", status=1)
    run("ngtool eval of a number that no integer holds", ngtool, "eval", "x", "x=9223372036854775808", "--backend", "cpu", says="exceeds 64 bits", status=1)
    run("ngtool eval of the least integer", ngtool, "eval", "x", "x=-2147483648", "--backend", "cpu", expect=["-2147483648"])
    run("ngtool refuses an option of another command", ngtool, "eval", "1", "--csv", "x.csv", says="eval has no option --csv", status=1)
    run("ngtool refuses words that nothing reads", ngtool, "devices", "extra", says="devices takes no words", status=1)
    run("ngtool eval of nothing", ngtool, "eval", "x", "x=", "--backend", "cpu", says="has no value", status=1)
    run("ngtool refuses lengths that are no numbers", ngtool, "explain", "x", "x=f32[-1]", "--length", "1e6", "--backend", "cpu", says="a whole number", status=1)
    run("ngtool bench says that it has no such case", ngtool, "bench", "small", "--only", "no such", "--backend", "cpu", says="no case of these", status=1)
    run("ngtool names the column of a fault", ngtool, "eval", "x +", "x=1", "--backend", "cpu", status=1)
    run("ngtool explain", ngtool, "explain", "softmax(x, 1)", "x=f32[-1,64]", "--backend", "cpu")
    run("ngtool explain of a file", ngtool, "explain", "sum(y, 0)", f"y={array}", "--backend", "cpu", expect=["argument 0  f32[3, 1]  y"])
    run("ngtool dot of a file that is not there", ngtool, "dot", "x", "x=no.npy", "--backend", "cpu", says="no file of that name", status=1)
    run("ngtool explain --json", ngtool, "explain", "--json", "softmax(x, 1)", "x=f32[8,64]", "--backend", "cpu", expect=["{"])
    run("ngtool tune says that it is for GPUs", ngtool, "tune", "x @ y", "x=f32[4,8]", "y=f32[8,2]", "--backend", "cpu", status=1)
    run("ngtool dot", ngtool, "dot", "relu(x @ w + b)", "x=f32[32,64]", "w=f32[64,10]", "b=f32[10]", "--backend", "cpu", expect=["digraph"])
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
