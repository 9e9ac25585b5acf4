"""Compiles shipped kernels with nvcc into one image and writes it as C++: refused where a kernel spills registers.

image.py NAME SOURCE OUTPUT_CC TABLE DEPFILE [--stack BYTES] [--spills BYTES] [--tables] [--only ARCH] [--own] [--code] [--compress] [--nvcc NVCC ROOT ARCH..]
--stack is what a kernel may have of a stack without spills; --spills what it may store and load of these, each; --tables makes switches jumps through tables; --only sm_90a: for that
architecture and no other, if sm_90 is among those wanted; such kernels are refused, too, where ptxas serialises their products;
--own: the text may ask which architecture it is compiled for, as far as TEXTS go; --code: the same, and there is no PTX.
Without nvcc the image is empty. TABLE tells registers, spilled bytes and shared memory of each kernel on each architecture.
"""
import re
import subprocess
import sys
from pathlib import Path

# What every GPU since Ampere can run: its driver compiles this where no ARCH fits.
PORTABLE = 80
# Architectures whose texts differ: what asks which it is compiled for asks for no other. Others take the text of the last of these before them, for
# from C++ to PTX takes as long as from there to code.
TEXTS = [PORTABLE, 89, 90]

CC = """// Made by kernels/image.py: the kernels of {name}.cu as the driver loads them; {count} bytes.
#include "kernels/shipped.h"

extern "C" {{
alignas(16) const unsigned char ng_{name}_image[{length}] = {{
{rows}
}};
const unsigned long long ng_{name}_image_bytes = {count};
const int ng_{name}_image_archs[] = {{{archs}}};
}}
"""
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'\n(?:.*\n)*?.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                   r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def numbers_of(archs):
    """One text for all: what is specific to one architecture has no place in these kernels."""
    numbers = sorted({int(re.fullmatch(r"sm_(\d+)[af]?", arch)[1]) for arch in archs})
    assert all(number >= PORTABLE for number in numbers), f"these kernels run from sm_{PORTABLE} on, not on {archs}"
    return numbers


def targets_of(numbers, only, is_own, is_code):
    if only:
        return [f"arch=compute_{only},code=sm_{only}"]
    codes = {}
    for number in numbers:
        text = max(text for text in TEXTS if text <= number) if is_own or is_code else PORTABLE
        codes.setdefault(text, []).append(f"sm_{number}")
    if not is_code:
        codes.setdefault(PORTABLE, []).append(f"compute_{PORTABLE}")
    return [f"arch=compute_{text},code=[{','.join(of_text)}]" for text, of_text in codes.items()]


def compiled(command, targets, files):
    """nvcc's image, and what ptxas says of each kernel."""
    source, image, depfile = files
    command += ["-std=c++20", "--fmad=false", "-Xptxas", "-v", "--threads", "2"]
    for target in targets:
        command += ["-gencode", target]
    command += ["-MD", "-MF", depfile, "-fatbin", "-o", image, source]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    said = done.stdout + done.stderr
    if serialised := re.findall(r".*C75\d\d.*", said):
        sys.exit("\n".join(serialised))
    kernels = ENTRY.findall(said)
    assert len(kernels) == said.count("Compiling entry function") > 0, "ptxas has other words than these: " + said
    return Path(image).read_bytes(), kernels


def table_of(kernels, stack_most, spills_most):
    """The table's text; ends the build where a kernel uses memory for what should be registers."""
    lines, spilled = [f"{'kernel':36} {'arch':8} registers  spills  shared"], []
    for kernel, arch, stack, stores, loads, registers, shared in sorted(kernels):
        if int(stack) > stack_most + spills_most or max(int(stores), int(loads)) > spills_most:
            spilled.append(f"{kernel} spills on {arch}: {stack} bytes of stack, {stores} stored, {loads} loaded")
        lines.append(f"{kernel:36} {arch:8} {registers:>9} {stores:>7} {shared or 0:>7}")
    if spilled:
        sys.exit("\n".join(spilled))
    return "\n".join(lines) + "\n"


def main():
    arguments = sys.argv[1:]
    name, source, output, table, depfile = arguments[:5]
    image, kernels, numbers, needed = b"", [], [], " " + source
    if "--nvcc" in arguments:
        nvcc, root, *archs = arguments[arguments.index("--nvcc") + 1:]
        numbers = numbers_of(archs)
        only = arguments[arguments.index("--only") + 1].removeprefix("sm_") if "--only" in arguments else ""
        if only:
            numbers = [number for number in numbers if f"{number}a" == only]
        command = [nvcc, f"-I{root}"] + (["--compress-mode=size"] if "--compress" in arguments else [])
        command += ["--jump-table-density", "10"] if "--tables" in arguments else []
        if numbers:
            image, kernels = compiled(command, targets_of(numbers, only, "--own" in arguments, "--code" in arguments), (source, output + ".fatbin", depfile + ".nvcc"))
            needed = Path(depfile + ".nvcc").read_text().split(":", 1)[1]
    most = [int(arguments[arguments.index(option) + 1]) if option in arguments else 0 for option in ("--stack", "--spills")]
    Path(table).write_text(table_of(kernels, *most))
    Path(depfile).write_text(f"{output}:{needed}")
    rows = [",".join(map(str, image[at:at + 32])) + "," for at in range(0, len(image), 32)] or ["0,"]
    Path(output).write_text(CC.format(name=name, count=len(image), length=max(len(image), 1), rows="\n".join(rows), archs=", ".join(map(str, numbers + [0]))))


main()
