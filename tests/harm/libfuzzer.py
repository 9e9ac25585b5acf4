"""Runs a target of libFuzzer from the seeds that the target makes itself and those in files, the same ones each time.

libfuzzer.py TARGET DRIVER SECONDS [CORPUS]
DRIVER is the same target with our own driver, which writes the seeds. An input that fails is kept beside the target.
"""
import os
import subprocess
import sys
import tempfile


def main():
    target, driver, seconds, *corpus = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        found, seeds = os.path.join(folder, "found"), os.path.join(folder, "seeds")
        os.mkdir(found)
        os.mkdir(seeds)
        subprocess.run([driver, "--write", seeds], check=True)
        # Sizes that no machine has are the library's to refuse; what it really takes is watched. Leaks are looked for once, at the end.
        # To choose by entropy takes three quarters of the time where an input goes through thousands of branches, as calls do.
        options = {"seed": 1, "entropic": 0, "max_total_time": seconds, "timeout": 60, "malloc_limit_mb": 10 ** 9, "detect_leaks": 0, "verbosity": 0,
                   "print_funcs": 0, "print_final_stats": 1, "artifact_prefix": target + "-"}
        status = subprocess.run([target, *(f"-{name}={value}" for name, value in options.items()), found, seeds, *corpus]).returncode
    print("1 passed, 0 failed" if status == 0 else "0 passed, 1 failed")
    return status != 0


if __name__ == "__main__":
    sys.exit(main())
