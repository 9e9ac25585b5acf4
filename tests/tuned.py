"""What ngtool tune has measured on a GPU is there for the next process that has its cache, and for no other.

    python3 tests/tuned.py NGTOOL

Without a GPU it says so and counts as skipped.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NGTOOL = str(Path(sys.argv[1]).resolve())
PRODUCT = ["f16(a @ b)", "a=f16[96,128]", "b=f16[128,64]", "--backend", "cuda"]
MEASURED = re.compile(r"measured: [^\"\n]* us; the model's choice [0-9.]+ us")
passed = failed = 0


def said(cache, command, *words):
    """What ngtool says in a process of its own, whose cache is that folder; all of it where it fails."""
    ran = subprocess.run([NGTOOL, command, *words, *PRODUCT], capture_output=True, text=True, timeout=240, env=os.environ | {"NG_CACHE_DIR": str(cache)})
    return ran.stdout + (ran.stderr if ran.returncode else "")


def check(what, is_so, text):
    """One case."""
    global passed, failed
    passed, failed = passed + bool(is_so), failed + (not is_so)
    if not is_so:
        print(f"{text[-2000:]}\nwrong: {what}")


def measured_in(text):
    found = MEASURED.search(text)
    return found[0] if found else None


def main():
    if not re.search("^cuda", subprocess.run([NGTOOL, "devices"], capture_output=True, text=True).stdout, re.M):
        print("skipped: ngtool devices knows no GPU\n0 passed, 0 failed, 4 skipped")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        own, other = Path(folder) / "own", Path(folder) / "other"
        text = said(own, "explain", "--json")
        check("explain before anything was measured speaks of no measurement", "tier" in text and not measured_in(text), text)
        text = said(own, "tune")
        first = measured_in(text)
        check("tune says what was fastest", first, text)
        text = said(own, "explain", "--json")
        check(f"explain in a new process repeats it: {first}", first and measured_in(text) == first, text)
        text = said(other, "explain", "--json")
        check("with another cache nothing is known", "tier" in text and not measured_in(text), text)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
