"""The commands of README.md and the manual do what they say, as they stand there: each line of a `sh` block is run by a shell.

commands.py NGTOOL
They run in a folder of their own that has data.npy, with NGTOOL's folder first in PATH. What is skipped, and why, is SKIPPED's.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "docs/manual.md"]
BLOCK = re.compile(r"^```sh\n(.*?)^```[ \t]*$", re.M | re.S)


def skipped(command, devices):
    """Why a command is not run here; nothing: it is."""
    words = command.split()
    if words[0] in ("sudo", "./dev", "meson", "git"):
        return "it builds or installs"
    if (words[:2] == ["ngtool", "tune"] or "--interim" in words) and "cuda" not in devices:
        return "it measures kernels of a GPU, and there is none"
    without = [part.split()[0] for part in command.split("|") if not shutil.which(part.split()[0])]
    return f"there is no {without[0]} here" if without else ""


def main():
    folder_of_tool = Path(sys.argv[1]).resolve().parent
    os.environ["PATH"] = f"{folder_of_tool}{os.pathsep}{os.environ['PATH']}"
    passed = failed = left = 0
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        def run(command):
            # pipefail: the first of two commands may be ours
            return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, text=True, timeout=600, env={**os.environ, "NG_CACHE_DIR": folder})

        devices = run("ngtool devices").stdout
        run("ngtool eval x x=f32[8,5] -o data.npy").check_returncode()
        for page in PAGES:
            commands = [line for block in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) for line in block.splitlines() if line.strip()]
            ours = [command for command in commands if command.startswith("ngtool")]
            if not ours:
                failed += 1
                print(f"{page} shows no ngtool")
            for command in commands:
                plain = re.sub(r"\s+# .*", "", command)
                if plain in seen:
                    continue
                seen.add(plain)
                reason = skipped(plain, devices)
                if reason:
                    left += 1
                    print(f"{page}: skipped, {reason}: {plain}")
                    continue
                ran = run(command)
                written = [Path(folder, name) for name in re.findall(r"-o (\S+)|> (\S+)", plain) for name in name if name]
                good = ran.returncode == 0 and (ran.stdout or written) and all(file.is_file() and file.stat().st_size for file in written)
                passed, failed = passed + bool(good), failed + (not good)
                if not good:
                    print(f"{page}: {command}\nended with {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    print(f"{passed} passed, {failed} failed, {left} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
