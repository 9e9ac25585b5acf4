"""ng.h compiles without a word of warning in every C and C++ that people use, alone and after the system's headers."""
import shutil
import subprocess
import tempfile
from pathlib import Path

from house import ROOT, Verdict

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Werror", "-fsyntax-only"]
C = {standard: ["-Wstrict-prototypes", "-Wc++-compat"] for standard in ("c99", "c11", "c17")}
CPP = {"c++98": ["-Wno-long-long", "-Wno-variadic-macros"], "c++11": [], "c++17": [], "c++20": []}
PROGRAM = """\
#include <ng.h>
#include <ng.h>
uint32_t all_of_it(ng_error *err);
uint32_t all_of_it(ng_error *err)
{
    ng_ctx *c = 0;
    ng_axes axes = NG_ALL;
    return ng_ctx_create(0, &c, err) == NG_OK && axes != 0 ? ng_version() : (uint32_t)sizeof(ng_shape);
}
"""

verdict = Verdict()
with tempfile.TemporaryDirectory() as folder:
    for compiler, standards, suffix in (("gcc", C, "c"), ("clang", C, "c"), ("g++", CPP, "cc"), ("clang++", CPP, "cc")):
        if not shutil.which(compiler):
            continue
        source = Path(folder) / f"face.{suffix}"
        source.write_text(PROGRAM)
        for standard, extra in standards.items():
            command = [compiler, f"-std={standard}", *WARNINGS, *extra, f"-I{ROOT / 'include'}", str(source)]
            said = subprocess.run(command, capture_output=True, text=True)
            verdict.check(said.returncode == 0, f"{compiler} -std={standard}: {said.stderr}")
verdict.close()
