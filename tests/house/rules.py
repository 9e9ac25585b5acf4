"""Every rule of docs/contract.md is proved by a test that begins with its number, and no test names a rule that is not there."""
import re

from house import Verdict, read, tree

CONTRACT = "docs/contract.md"

verdict, tests = Verdict(), {}
rules = re.findall(r"^\*\*([A-Z]\d+)\.\*\* \S", read(CONTRACT), re.M)
for path in tree(".cc"):
    if path.parts[:2] != ("tests", "contract"):
        continue
    for rule in re.findall(r'^TEST_CASE\("([A-Z]\d+):', read(path), re.M):
        tests.setdefault(rule, path)
for rule in rules:
    verdict.check(rules.count(rule) == 1, f"{CONTRACT}: {rule} stands twice")
    verdict.check(rule in tests, f'{CONTRACT}: {rule} is proved by no TEST_CASE("{rule}: ...") in tests/contract/')
for rule, path in sorted(tests.items()):
    verdict.check(rule in rules, f"{path}: {rule} is no rule of {CONTRACT}")
# Numbers run on within a letter: one that is missing was lost, or its line is not read as a rule.
for letter in dict.fromkeys(rule[0] for rule in rules):
    numbers = [int(rule[1:]) for rule in rules if rule[0] == letter]
    verdict.check(numbers == list(range(1, len(numbers) + 1)), f"{CONTRACT}: the rules {letter} are numbered {numbers}")
verdict.close()
