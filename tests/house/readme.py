"""The C programs of README.md compile as they stand there, and run."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from house import ROOT, Verdict, read

library = Path(sys.argv[1]).resolve()
compiler = sys.argv[2] if len(sys.argv) > 2 else "cc"
verdict = Verdict()
programs = [text for text in re.findall(r"^```c\n(.*?)^```", read("README.md"), re.M | re.S) if "int main" in text]
verdict.check(bool(programs), "README.md shows no whole C program")
with tempfile.TemporaryDirectory() as folder:
    for number, text in enumerate(programs):
        source, program = Path(folder) / f"readme{number}.c", Path(folder) / f"readme{number}"
        source.write_text(text)
        command = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", str(source), "-o", str(program),
                   str(library), f"-Wl,-rpath,{library.parent}", "-lm"]
        said = subprocess.run(command, capture_output=True, text=True)
        verdict.check(said.returncode == 0, f"program {number + 1} does not compile:\n{said.stderr}")
        if said.returncode == 0:
            ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, env={**os.environ, "NG_CACHE_DIR": folder})
            verdict.check(ran.returncode == 0, f"program {number + 1} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
verdict.close()
