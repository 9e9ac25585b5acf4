"""libng.so exports what ng.h declares, nothing else and nothing weak; it needs the C++ runtime and the C library, no more."""
import re
import sys

from house import Verdict, output
import api

NEEDED = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

library, *isolated = sys.argv[1:]
verdict, declared = Verdict(), {function.name for function in api.read_api().functions}
exported = {}
for line in output("nm", "-D", "--defined-only", library).splitlines():
    kind, name = line.split()[-2:]
    if kind != "A":                                                        # the name of the version itself
        exported[name.split("@")[0]] = kind
for name in sorted(declared | set(exported)):
    verdict.check(name in exported, f"{name}: ng.h declares it, the library has none")
    verdict.check(name in declared, f"{name}: the library exports it, ng.h does not declare it")
    verdict.check(exported.get(name, "T") == "T", f"{name}: exported as {exported.get(name)}, should be an ordinary function")

dynamic = output("readelf", "-d", library)
verdict.check("Library soname: [libng.so.1]" in dynamic, "the soname is not libng.so.1")
for name in re.findall(r"Shared library: \[(.+?)\]", dynamic):
    verdict.check(name in NEEDED, f"the library needs {name}")
verdict.check("TEXTREL" not in dynamic, "the library's code is relocated when loaded")

# Loops built for one instruction set: a weak symbol in them could be chosen for every machine.
for archive in isolated:
    weak = [line for line in output("nm", "--defined-only", archive).splitlines() if re.search(r" [WVu] ", line)]
    verdict.check(not weak, f"{archive} holds weak symbols:\n" + "\n".join(weak[:10]))
verdict.close()
