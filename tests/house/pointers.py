"""tests/contract/pointers_test.cc passes NULL for every pointer of ng.h that is no handle: one that is added without a row fails here.

Rows say what ng.h says: a pointer that is NG_OPT is taken as NULL, any other refused. NULL stands where the row says, and nowhere else
where it would be refused as well. Handles have tests/lib/faults_test.cc; those that are NG_OPT have rows here, too.
"""
from house import ROOT, Verdict
import api

FILE = "tests/contract/pointers_test.cc"
KINDS = {"REFUSES": False, "SILENT": False, "TAKES": True}

verdict, records = Verdict(), api.read_api()
functions = {function.name: function for function in records.functions}
words = {f"ng_{word.name}" for word in records.words if word.kind != "NODE"}


def is_handle(parameter):
    return not parameter.count and parameter.type.replace("const ", "") in {f"{handle} *" for handle in records.handles}


def wants_row(function, parameter):
    if "*" not in parameter.type or function.returns == "void":
        return False
    return parameter.optional if is_handle(parameter) else True


seen = set()
for kind, (name, function_name, *arguments) in api.rows(ROOT / FILE, KINDS):
    row, function = f"{FILE}: {kind}({name}, {function_name}, ..)", functions.get(function_name)
    verdict.check(function is not None, f"{row}: ng.h has no such function")
    if not function:
        continue
    verdict.check(len(arguments) == len(function.params), f"{row}: ng.h has {len(function.params)} parameters")
    given = dict(zip((parameter.name for parameter in function.params), arguments))
    verdict.check(given.get(name) == "nullptr", f"{row}: {name} is {given.get(name, 'no parameter')}, should be nullptr")
    for parameter in function.params:
        if parameter.name == name:
            verdict.check(parameter.optional == KINDS[kind], f"{row}: ng.h says it {'may' if parameter.optional else 'may not'} be NULL")
        elif not parameter.optional and "*" in parameter.type:
            verdict.check(given.get(parameter.name) != "nullptr", f"{row}: {parameter.name} is NULL as well")
    seen.add((function_name, name))
    if given.get("err") == "err":
        seen.add((function_name, "err"))
for function in records.functions:
    for parameter in function.params:
        if function.name not in words and wants_row(function, parameter):
            verdict.check((function.name, parameter.name) in seen, f"{FILE}: no row has NULL for {parameter.name} of {function.name}")
verdict.close()
