"""Every C example of README.md and of docs/*.md compiles as it stands there, runs, and prints what the page says.

A fenced `c` block with `int main` is a whole program. The first one of a page that holds the line `/* ... */` is the frame:
the page's other blocks are fragments. Those of one `## ` section are one program, in their order: blocks that begin with
`static`, `#` or `typedef` stand before the frame's main, the others in the place of its `/* ... */`. What a program prints is
the `text` blocks that follow its code in its section; a whole program without one may print what it likes.

  snippets.py LIBRARY COMPILER..        tests them all          --show PAGE SECTION   prints a section's program instead
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from house import ROOT, Verdict, read

GAP = re.compile(r"^[ \t]*/\* \.\.\. \*/[ \t]*\n", re.M)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```[ \t]*$", re.M | re.S)


@dataclass
class Program:
    name: str                                     # "docs/manual.md, Lengths"
    text: str = ""                                # of a whole program
    before: list = field(default_factory=list)    # fragments outside main
    inside: list = field(default_factory=list)
    printed: list = field(default_factory=list)
    whole: bool = False


def programs_of(page, text):
    """The programs of a page, fragments put into its frame."""
    found, frame, fragments = [], None, None
    for part in re.split(r"^(?=## )", text, flags=re.M):
        title = re.match(r"## (.*)", part)
        name = f"{page}, {title[1] if title else 'its head'}"
        fragments = last = None
        for language, body in FENCE.findall(part):
            if language == "text" and last:
                last.printed.append(body)
            if language != "c":
                continue
            if re.search(r"^int main\(", body, re.M):
                last = Program(name, body, whole=True)
                frame = frame or (body if GAP.search(body) else None)
                found.append(last)
                continue
            if not fragments:
                fragments = Program(name)
                found.append(fragments)
            last = fragments
            (fragments.before if re.match(r"static\b|#|typedef\b", body) else fragments.inside).append(body)
    for program in found:
        if program.whole or not frame:
            continue
        start = re.search(r"^int main\(", frame, re.M).start()
        text = frame[:start] + "\n".join(program.before) + "\n" + frame[start:]
        program.text = GAP.sub(lambda gap: "\n".join(program.inside), text, count=1)
    return found


def run(program, folder, library, compiler):
    """What is wrong with a program; nothing when all is well."""
    source, binary = Path(folder) / "snippet.c", Path(folder) / "snippet"
    source.write_text(program.text)
    command = [*compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-parameter", "-D_GNU_SOURCE", f"-I{ROOT / 'include'}", str(source),
               "-o", str(binary), str(library), f"-Wl,-rpath,{library.parent}", "-lm", "-pthread", "-ldl"]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode:
        return f"does not compile:\n{said.stderr}"
    ran = subprocess.run([str(binary)], capture_output=True, text=True, timeout=120, cwd=folder, env={**os.environ, "NG_CACHE_DIR": folder})
    if ran.returncode:
        return f"ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}"
    wanted = "".join(program.printed)
    if (program.printed or not program.whole) and ran.stdout != wanted:
        return f"printed\n{ran.stdout}and its page says\n{wanted}"
    return ""


def main():
    pages = ["README.md"] + sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
    programs = {page: programs_of(page, read(page)) for page in pages}
    if sys.argv[1] == "--show":
        wanted = ", ".join(sys.argv[2:])
        print("\n".join(program.text for page in pages for program in programs[page] if program.name == wanted))
        return
    library, compiler = Path(sys.argv[1]).resolve(), sys.argv[2:] or shlex.split(os.environ.get("CC", "cc"))
    verdict = Verdict()
    for page in ("README.md", "docs/manual.md"):
        verdict.check(any(program.whole for program in programs[page]), f"{page} shows no whole C program")
    with tempfile.TemporaryDirectory() as folder:
        for program in (program for page in pages for program in programs[page]):
            fault = run(program, folder, library, compiler) if program.text else "has fragments, and its page no frame with a line /* ... */"
            verdict.check(not fault, f"{program.name}: {fault}")
    verdict.close()


if __name__ == "__main__":
    main()
