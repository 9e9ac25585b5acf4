"""tests/lib/faults_test.cc calls every function of ng.h: one that is added and not called there with wrong handles fails here."""
import re

from house import Verdict, read
import api

FILE = "tests/lib/faults_test.cc"

verdict, records = Verdict(), api.read_api()
text = re.sub(r"//[^\n]*", "", read(FILE))
# A row names its function after its kind of handle; other calls have a parenthesis behind the name.
called = set(re.findall(r"\b(?:SAYS|STATUS|BUILDS|QUIET|NOTHING|CALLS)\('\w', (ng_\w+)", text)) | set(re.findall(r"\b(ng_\w+)\(", text))
# Words come from their table, by a macro for each kind of row; nodes have no function of that name, or one of another form.
has_table = '#include "jit/ops.def"' in text
for word in records.words:
    if has_table and word.kind != "NODE" and re.search(rf"#define {word.kind}\(name, \.\.\.\) BUILDS|#define {word.kind}\(name, arity, \.\.\.\) WORD_", text):
        called.add(f"ng_{word.name}")
declared = {function.name for function in records.functions}
for name in sorted(declared):
    verdict.check(name in called, f"{FILE}: {name} is in ng.h and is not called with wrong handles")
for name in sorted(called - declared - {"ng_"}):
    verdict.check(False, f"{FILE}: {name} is called, and ng.h lacks it")
verdict.close()
