"""Users' whole programs on a heap that refuses libng something: each ends by itself, and never with wrong numbers.

programs_refused.py [--each] [--jobs N] REFUSING_HEAP PROGRAM..
Of a program that asks up to EACH_UP_TO times every request is refused, or with --each whatever it asks; of others those up to the tenth, then one
in growing steps. Once that one alone, once all behind it too. --jobs: how many programs run at once.
"""
import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

SECONDS = 60
EACH_UP_TO = 1000          # a quarter of a minute
# Arrays that check.h compared. Other checks may fail for what was never made: memory nobody uses comes back at once.
WRONG = re.compile(r"^FAIL .*\[\d+ of \d+\] is .* should be ", re.M)


def run(heap, program, **more):
    environment = {**os.environ, "NG_CACHE_DIR": "", "LD_PRELOAD": heap, **more}
    try:
        ran = subprocess.run([program], env=environment, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, ""
    return ran.returncode, ran.stdout + ran.stderr


def numbers(count, each):
    """The requests that are refused, of so many."""
    number = 1
    while number <= count:
        yield number
        number += 1 if each or count <= EACH_UP_TO else 1 + number // 10


def fault_of(heap, program, each, pool):
    """What is wrong with a program, nothing when all is well; and how often it ran."""
    status, said = run(heap, program, REFUSED_COUNT="1")
    asked = re.search(r"^asked (\d+)$", said, re.M)
    if status or not asked:
        return f"with everything it asks for it ends with {status}:\n{said[-2000:]}", 1

    def refused(case):
        number, more = case
        status, said = run(heap, program, REFUSED_AT=str(number), **more)
        if status not in (0, 1) or WRONG.search(said) or (status and not said):
            return f"request {number} of {asked[1]} refused {more}: ends with {status}:\n{said[-2000:]}"
        return ""

    cases = [(number, more) for more in ({}, {"REFUSED_ALL": "1"}) for number in numbers(int(asked[1]), each)]
    return next(filter(None, pool.map(refused, cases)), ""), len(cases)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("heap")
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for program in options.programs:
            fault, runs = fault_of(options.heap, program, options.each, pool)
            failed += fault != ""
            print(f"{os.path.basename(program)}: {fault or f'{runs} runs'}", flush=True)
    print(f"{len(options.programs) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
