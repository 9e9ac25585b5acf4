"""Builds the library once more with sanitizers, in a folder of its own, and runs the suites there that look for harm.

sanitized.py address|thread FOLDER CC CXX
address: memory, leaks and undefined behaviour; every suite but those that bring heaps of their own, fuzzers a minute each.
thread: races; the tests whose threads ThreadSanitizer sees begin (of C11's it knows nothing).
"""
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUITES = {"jit", "lib", "contract", "programs", "harm"}
KINDS = {
    "address": {
        "options": ["-Db_sanitize=address,undefined", "-Dfuzz_seconds=60"],
        "wanted": lambda name, suites: bool(suites & SUITES) and name not in ("memory_test", "quiet_test") and not name.startswith("sanitized"),
        # A failing allocation is a status of ours, not the end; what runs at a fork's end is the parent's to free.
        "environment": {"ASAN_OPTIONS": "allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
    },
    "thread": {
        "options": ["-Db_sanitize=thread"],
        "wanted": lambda name, _: name in ("context_test", "ends_test", "handle_test", "program_test", "tensor_test", "workers_test", "programs_test",
                                           "sharing_test", "threads_test"),
        "environment": {"TSAN_OPTIONS": "halt_on_error=1"},
    },
}


def run(command, **more):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def configure(folder, kind, compilers):
    options = ["--buildtype=debug", "-Doptimization=1", "-Db_lundef=false", "-Dcuda=disabled", "-Dtests=enabled", "-Dsanitized=disabled", *kind["options"]]
    environment = {**os.environ, "CC": compilers[0], "CXX": compilers[1]}
    if (folder / "build.ninja").exists():
        run(["meson", "configure", folder, *options])
    else:
        run(["meson", "setup", folder, ROOT, *options], env=environment)


def introspected(folder, what):
    return json.loads(run(["meson", "introspect", folder, what]))


def main():
    kind, folder = KINDS[sys.argv[1]], Path(sys.argv[2])
    configure(folder, kind, sys.argv[3:5])
    tests = [test for test in introspected(folder, "--tests") if kind["wanted"](test["name"], {suite.split(":")[-1] for suite in test["suite"]})]
    needed = {target for test in tests for target in test["depends"]}
    files = [os.path.relpath(file, folder) for target in introspected(folder, "--targets") if target["id"] in needed for file in target["filename"]]
    # Another of these may be on the other core.
    run(["ninja", "-C", folder, "-j1", *sorted(files)])
    environment = {**os.environ, **kind["environment"]}
    done = subprocess.run(["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", "--num-processes", "1", "-t", "10", *sorted({test["name"] for test in tests})],
                          text=True, capture_output=True, env=environment)
    results = [json.loads(line) for line in (folder / "meson-logs/testlog.json").read_text().splitlines()]
    bad = [test["name"] for test in results if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")]
    if bad or done.returncode:
        print(done.stdout[-20000:], done.stderr[-2000:])
    print("\n".join(f"{name} has failed" for name in bad))
    failed = len(bad) + (done.returncode != 0 and not bad) + (len(results) < len(tests))
    print(f"{len(results) - len(bad)} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
