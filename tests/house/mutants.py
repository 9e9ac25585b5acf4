"""What tests/harm/mutate.py breaks by hand still stands in the tree, once, and docs/testing.md lists it by the same words."""
import sys

from house import ROOT, Verdict, read

sys.path.insert(0, str(ROOT / "tests" / "harm"))
import mutate  # noqa: E402

verdict, page = Verdict(), read("docs/testing.md")
for number, mutant in enumerate(mutate.MUTANTS, 1):
    found = read(mutant.path).count(mutant.old)
    verdict.check(found == 1, f"mutate.py {number} ({mutant.what}): its lines stand {found} times in {mutant.path}")
    row = f"| {number} | {mutant.what} | `{mutant.path}` |"
    verdict.check(row in page, f"docs/testing.md: no row begins with {row}")
verdict.close()
