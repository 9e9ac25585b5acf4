"""Users' whole programs on a heap that refuses libng something: each ends by itself, and never with wrong numbers.

programs_refused.py [--each] REFUSING_HEAP PROGRAM..
Every request up to the tenth is refused, then one in growing steps, or with --each every one; once that one alone, once all behind it too.
"""
import os
import re
import subprocess
import sys

SECONDS = 60
# Arrays that check.h compared. Other checks may fail for what was never made: memory nobody uses comes back at once.
WRONG = re.compile(r"^FAIL .*\[\d+ of \d+\] is .* should be ", re.M)


def run(heap, program, **more):
    environment = {**os.environ, "NG_CACHE_DIR": "", "LD_PRELOAD": heap, **more}
    try:
        ran = subprocess.run([program], env=environment, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, ""
    return ran.returncode, ran.stdout + ran.stderr


def fault_of(heap, program, each):
    """What is wrong with a program; nothing when all is well."""
    status, said = run(heap, program, REFUSED_COUNT="1")
    count = re.search(r"^asked (\d+)$", said, re.M)
    if status or not count:
        return f"with everything it asks for it ends with {status}:\n{said[-2000:]}"
    for more in ({}, {"REFUSED_ALL": "1"}):
        number = 1
        while number <= int(count[1]):
            status, said = run(heap, program, REFUSED_AT=str(number), **more)
            if status not in (0, 1) or WRONG.search(said) or (status and not said):
                return f"request {number} of {count[1]} refused {more}: ends with {status}:\n{said[-2000:]}"
            number += 1 if each else 1 + number // 10
    return ""


def main():
    each = sys.argv[1] == "--each"
    heap, *programs = sys.argv[1 + each:]
    failed = 0
    for program in programs:
        fault = fault_of(heap, program, each)
        failed += fault != ""
        if fault:
            print(f"{os.path.basename(program)}: {fault}")
    print(f"{len(programs) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
