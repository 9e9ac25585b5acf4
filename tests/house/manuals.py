"""The target docs is made by a build that has it, and its man pages are typeset without a warning where there is something that typesets.

manuals.py BUILD
"""
import shutil
import subprocess
import sys
from pathlib import Path

from house import Verdict
import api

# What reads man pages and says what it does not like, the first that is here.
READERS = (["groff", "-man", "-ww", "-Tutf8", "-z"], ["mandoc", "-T", "lint", "-W", "warning"], ["man", "--warnings", "-l"])

verdict, folder = Verdict(), Path(sys.argv[1]) / "docs"
made = subprocess.run(["ninja", "-C", sys.argv[1], "docs"], capture_output=True, text=True)
verdict.check(made.returncode == 0, f"ninja docs:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
names = {function.name for function in api.read_api().functions}
pages = {page.stem: page for page in folder.glob("man3/*.3")}
verdict.check(set(pages) == names, f"man pages of no function: {sorted(set(pages) - names)}, functions without one: {sorted(names - set(pages))}")
verdict.check((folder / "reference.html").is_file(), "docs/reference.html was not written")
reader = next((command for command in READERS if shutil.which(command[0])), None)
if reader and pages:
    said = subprocess.run([*reader, *(str(page) for page in pages.values())], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if reader[0] == "mandoc" else subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    lines = [line for line in f"{said.stdout or ''}{said.stderr}".splitlines() if line.strip()]
    for name, page in pages.items():
        faults = [line for line in lines if page.name in line]
        verdict.check(not faults, "\n".join(faults))
    rest = [line for line in lines if not any(page.name in line for page in pages.values())]
    verdict.check(not rest and not said.returncode, f"{reader[0]} ended with {said.returncode}: " + "\n".join(rest))
else:
    verdict.skip("neither groff, mandoc nor man is installed: the man pages were not typeset")
verdict.close()
