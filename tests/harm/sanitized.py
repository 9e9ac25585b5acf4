"""Builds what looks for harm once more with sanitizers, in a folder of its own that is kept, and runs it there.

sanitized.py address|thread BUILD CC CXX
address: memory, leaks and undefined behaviour under the fuzzers, a minute each, with clang's libFuzzer, too, where it is; under the tests of
lib; and under BUILD's own tests that see ng.h alone: these find the library with sanitizers in place of theirs, and are not compiled again.
Those of jit, which have their own jit/ in them, run with the sanitizer's heap alone: leaks, and what overruns a block there.
thread: races under the tests that start threads, as far as ThreadSanitizer sees threads begin (of C11's it knows nothing).
clang is taken before CXX: it needs half the time.
"""
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from count import counts

FUZZERS = ["api_fuzz", "load_fuzz", "parse_fuzz"]
LIBFUZZER = [name + "_libfuzzer" for name in FUZZERS]
THREADS = ["context_test", "ends_test", "footprint_test", "handle_test", "program_test", "programs_test", "sharing_test", "tensor_test", "threads_test", "workers_test"]
SECONDS = 60
MOST_SECONDS = 900         # of a test of the face
BUILT_SUITES, FACE_SUITES, HEAP_SUITES = {"lib"}, {"contract", "harm", "programs", "random"}, {"jit"}
# Of the latter two: heaps of their own stand where the sanitizer's would, and a library of its own is loaded by its path; of jit,
# what compiles for minutes the texts that are emitted.
LEFT_OUT = {"audio", "memory_test", "programs_refused", "quiet_test", "reload_test", "emit_compile_test", "emit_emulation_test", "emit_family_test", "emit_rows_test", "emit_staying_test"}
# 20000 random programs would be the longest of all. A child that is forked while other threads allocate waits for ever for a lock of the sanitizer's
# own heap, seen with LLVM 14; the plain test forks so, and surroundings_test has a child of a quiet parent here.
ARGUMENTS = {"random_programs": ["--count", "6000"], "host_test": ["--test-case-exclude=fork*"]}
# clang defines no such names; tests look for them, since ThreadSanitizer cannot follow a forked child and AddressSanitizer ends where no page is left.
THREAD_ARGUMENTS = ["-D__SANITIZE_THREAD__=1"]
# What a virtual table says is not looked at: it would be half of the objects.
ADDRESS_ARGUMENTS = ["-D__SANITIZE_ADDRESS__=1", "-fno-sanitize=vptr", "-fno-sanitize-recover=undefined"]
PROBE = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n'
MAIN = "int main() { return 0; }\n"
# A failing allocation is a status of ours, not the end. Vectors' alignment is looked at, so elements lie where their types say.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1", "TSAN_OPTIONS": "halt_on_error=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
               "HARM_ALIGNED": "1"}


def works(cxx, sanitizers, text, *arguments):
    """Whether this compiler makes programs with these sanitizers, and they run."""
    command = shlex.split(cxx)             # ccache may stand before it
    if not shutil.which(command[-1]):
        return False
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.cc"), Path(folder, "probe")
        source.write_text(text)
        made = subprocess.run([*command, f"-fsanitize={sanitizers}", source, "-o", program], capture_output=True)
        return made.returncode == 0 and subprocess.run([program, *arguments], capture_output=True).returncode == 0


def run(command, **more):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode:
        print(done.stdout[-20000:])
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return done.stdout


def configure(folder, options, compilers):
    options = ["-Ddebug=false", "-Doptimization=1", "-Db_ndebug=false", "-Db_lundef=false", "-Dcuda=disabled", "-Dexamples=disabled", "-Dtests=enabled",
               "-Dsanitized=disabled", *options]
    if (folder / "build.ninja").exists():
        run(["meson", "configure", folder, *options])
    else:
        run(["meson", "setup", folder, ROOT, *options], env={**os.environ, "CC": compilers[0], "CXX": compilers[1]})


def introspected(folder, what):
    return json.loads(run(["meson", "introspect", folder, what]))


def tests_of(folder, suites):
    return [test for test in introspected(folder, "--tests") if any(suite.split(":")[-1] in suites for suite in test["suite"])]


def build(folder, names, suites, jobs):
    """The files of these tests and of those of these suites; the names of all."""
    # Asking about tests needs what Meson wrote last, which Ninja brings up to date.
    run(["ninja", "-C", folder, "build.ninja"])
    names = names + [test["name"] for test in tests_of(folder, suites)]
    needed = {target for test in introspected(folder, "--tests") if test["name"] in names for target in test["depends"]}
    files = [os.path.relpath(file, folder) for target in introspected(folder, "--targets") if target["id"] in needed for file in target["filename"]]
    run(["ninja", "-C", folder, f"-j{jobs}", *sorted(files)])
    return names


def run_with(library, test, cxx):
    """A plain build's test before which the sanitizer and this library, if any, are loaded, in the words of Meson's log."""
    runtime = f"libclang_rt.asan-{platform.machine()}.so" if "clang" in cxx else "libasan.so"
    path = run([*shlex.split(cxx), f"-print-file-name={runtime}"]).strip()
    if not Path(path).is_absolute():
        return {"result": "SKIP", "stdout": f"{runtime} is not installed"}
    command, environment = test["cmd"] + ARGUMENTS.get(test["name"], []), {**ENVIRONMENT, **test["env"], "LD_PRELOAD": f"{path} {library}".strip()}
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"result": "TIMEOUT", "stdout": f"not done after {MOST_SECONDS} s"}
    return {"result": "OK" if done.returncode == 0 else "FAIL", "stdout": done.stdout, "stderr": done.stderr}


def run_face(build_folder, library, cxx, jobs):
    """What BUILD's tests of the face say with this library, and others with the sanitizer's heap, by their names. It has no CUDA."""
    tests = [(test, loaded) for suites, loaded in ((FACE_SUITES, library), (HEAP_SUITES, "")) for test in tests_of(build_folder, suites)
             if test["name"] not in {*LEFT_OUT, *FUZZERS} and "NG_TEST_BACKEND" not in test["env"]]
    with ThreadPoolExecutor(jobs) as pool:
        said = pool.map(lambda test: run_with(test[1], test[0], cxx), tests)
        return {test["name"]: words for (test, _), words in zip(tests, said)}


def chosen(kind, compilers):
    """The compilers that make what runs here, the tests that they make, the tests that they do not, and the options of their build."""
    clang = ["clang", "clang++"]
    if kind == "address" and works("clang++", "address,undefined,fuzzer", PROBE, "-runs=1"):
        return clang, FUZZERS + LIBFUZZER, [], ["-Db_sanitize=address,undefined", "-Dfuzzers=enabled",
                                                f"-Dcpp_args={' '.join(['-fsanitize=fuzzer-no-link', *ADDRESS_ARGUMENTS])}"]
    if kind == "address" and works(compilers[1], "address,undefined", MAIN):
        return compilers, FUZZERS, LIBFUZZER, ["-Db_sanitize=address,undefined", f"-Dcpp_args={' '.join(ADDRESS_ARGUMENTS)}"]
    for pair in (clang, compilers):                  # the first takes half the time of g++
        if kind == "thread" and works(pair[1], "thread", MAIN):
            return pair, THREADS, [], ["-Db_sanitize=thread", f"-Dcpp_args={' '.join(THREAD_ARGUMENTS)}"]
    return None, [], FUZZERS + LIBFUZZER if kind == "address" else THREADS, []


def main():
    kind, build_folder, *compilers = sys.argv[1:]
    compilers, names, unmade, options = chosen(kind, compilers)
    if unmade:
        print(f"skipped: no compiler here makes {', '.join(unmade)} with this sanitizer so that they run")
    if not compilers:
        print(f"0 passed, 0 failed, {len(unmade)} skipped")
        return 77
    # Another of these may be on the other half of the cores.
    jobs = max(1, len(os.sched_getaffinity(0)) // 2)
    folder = Path(build_folder) / "sanitized" / kind / Path(shlex.split(compilers[1])[-1]).name
    configure(folder, [*options, f"-Dfuzz_seconds={SECONDS}"], compilers)
    names = build(folder, names, BUILT_SUITES if kind == "address" else set(), jobs)
    log = folder / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    subprocess.run(["meson", "test", "-C", folder, "--no-rebuild", "--num-processes", str(jobs), "-t", "10", *names], env=ENVIRONMENT, capture_output=True)
    ran = {test["name"].split(" / ")[-1]: test for test in map(json.loads, log.read_text().splitlines())} if log.exists() else {}
    if kind == "address":
        face = run_face(build_folder, folder / "lib/libng.so.1", compilers[1], jobs)
        names, ran = names + list(face), {**ran, **face}
    passed, failed, skipped = 0, 0, len(unmade)
    for name in names:
        mine = counts(ran[name]) if name in ran else (0, 1, 0)
        passed, failed, skipped = passed + mine[0], failed + mine[1], skipped + mine[2]
        if mine[1]:
            print(f"{name} under {kind}: {ran.get(name, {}).get('result', 'never ran')}")
            print(ran.get(name, {}).get("stdout", "")[-4000:], ran.get(name, {}).get("stderr", "")[-12000:])
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
