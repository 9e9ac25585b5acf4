"""tests/harm/sanitized.py names the same tests whatever compilers there are: what none of them makes is skipped, not left out."""
import sys

from house import ROOT, Verdict

sys.path[:0] = [str(ROOT / "tests" / "harm"), str(ROOT / "tests")]
import sanitized  # noqa: E402

CLANG = {"clang": lambda cxx, sanitizers: True, "clang without libFuzzer": lambda cxx, sanitizers: "fuzzer" not in sanitizers,
         "GCC alone": lambda cxx, sanitizers: "clang" not in cxx, "no sanitizer": lambda cxx, sanitizers: False}

verdict = Verdict()
for kind, wanted in (("address", {*sanitized.FUZZERS, *sanitized.LIBFUZZER}), ("thread", {*sanitized.THREADS})):
    for what, has in CLANG.items():
        sanitized.works = lambda cxx, sanitizers, *rest, has=has: has(cxx, sanitizers)
        compilers, made, unmade, options = sanitized.chosen(kind, ["cc", "c++"])
        verdict.check(sorted([*made, *unmade]) == sorted(wanted), f"{kind} with {what}: {made} run and {unmade} are skipped, should be {sorted(wanted)}")
        verdict.check(bool(compilers) == bool(made) == bool(options), f"{kind} with {what}: {compilers} make {made} with {options}")
verdict.close()
