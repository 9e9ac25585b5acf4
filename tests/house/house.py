"""What the house checks share: the files of the tree, and a verdict that Meson's log keeps."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["include", "jit", "lib", "kernels", "bindings", "tests", "examples", "docs"]
CODE = {".c", ".cc", ".cu", ".cuh", ".def", ".h", ".py"}
sys.path.insert(0, str(ROOT / "bindings"))


def tree(*suffixes, under=FOLDERS):
    """The tree's files of these suffixes, as paths below its root."""
    found = [p for folder in under for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return sorted(p.relative_to(ROOT) for p in found if not suffixes or p.suffix in suffixes)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def output(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


class Verdict:
    """Counts what held; says at once what did not."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, holds, fault):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(fault)

    def skip(self, reason):
        self.skipped += 1
        print(f"skipped: {reason}")

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else ""))
        sys.exit(1 if self.failed or not self.passed else 0)
