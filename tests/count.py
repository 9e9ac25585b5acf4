"""Counts the cases of all tests that Meson ran: "N passed, N failed, N skipped" is its last line, a failure its status."""
import json
import re
import subprocess
import sys
from pathlib import Path

DOCTEST = re.compile(r"^\[doctest\] test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped", re.M)
OURS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)


def counts(test):
    """(passed, failed, skipped) of one test. One without counts is one case; one that broke off has failed, whatever it said."""
    text = test.get("stdout") or ""
    passed = failed = skipped = 0
    found = [tuple(map(int, match)) for match in DOCTEST.findall(text)]
    if found:
        passed, failed, skipped = found[-1][1:]
    elif OURS.search(text):
        passed, failed, skipped = (int(number or 0) for number in OURS.findall(text)[-1])
    ended_well = test["result"] in ("OK", "SKIP", "EXPECTEDFAIL")
    if not ended_well:
        failed = max(failed, 1)
    elif passed + failed + skipped == 0:
        passed, skipped = (0, 1) if test["result"] == "SKIP" else (1, 0)
    return passed, failed, skipped


def expected(build, suites):
    """The names of the tests that were asked for: one that left no line in the log has failed."""
    listed = json.loads(subprocess.run(["meson", "introspect", str(build), "--tests"], check=True, capture_output=True, text=True).stdout)
    return {test["name"] for test in listed if not suites or any(s.split(":")[-1] in suites for s in test["suite"])}


def main():
    build, suites = Path(sys.argv[1]), set(sys.argv[2:])
    log = build / "meson-logs/testlog.json"
    ran = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    total, broken = [0, 0, 0], []
    for test in ran:
        case = counts(test)
        total = [a + b for a, b in zip(total, case)]
        if case[1]:
            broken.append(f"{test['name'].split(' / ')[-1]}: {case[1]} failed ({test['result']}, {test.get('duration', 0):.1f} s)")
    silent = expected(build, suites) - {test["name"].split(" / ")[-1] for test in ran}
    total[1] += len(silent)
    broken += [f"{name}: never ran" for name in sorted(silent)]
    if not ran and not silent:
        total[1], broken = 1, ["no test was found" + (" in " + " ".join(sorted(suites)) if suites else "")]
    print("\n" + "\n".join(broken) if broken else "")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
