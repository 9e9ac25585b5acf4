"""Nothing of ours runs when the library is loaded or unloaded, no variable is a thread's own, and jit/ has no globals."""
import re
import sys

from house import Verdict, output

library, jit = sys.argv[1:3]
verdict = Verdict()
sections = {m[1]: int(m[2], 16) for m in re.finditer(r"\]\s+(\.\S+)\s+\S+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)", output("readelf", "-SW", library))}
verdict.check(".text" in sections, "no section was read: is this the library?")
# One address each is the compiler's own: frame_dummy and __do_global_dtors_aux. __builtin_cpu_supports would add another.
for name in (".init_array", ".fini_array"):
    verdict.check(sections.get(name, 0) <= 8, f"{name} has {sections.get(name, 0) // 8} entries, one is the compiler's own")
for name in (".tdata", ".tbss", ".ctors", ".dtors", ".preinit_array"):
    verdict.check(name not in sections, f"the library has a section {name}")

symbols = output("nm", "-C", library).splitlines()
for pattern, what in ((r" _GLOBAL__sub_I| __cpu_indicator_init", "a static constructor"), (r" guard variable for ", "a static that is made when first met")):
    found = [line for line in symbols if re.search(pattern, line)]
    verdict.check(not found, f"{what}:\n" + "\n".join(found[:10]))
# Constants with addresses in them are written once, by the loader: .data.rel.ro.
variables = [line for line in output("objdump", "-t", "-C", jit).splitlines() if re.search(r" O (\.data(?!\.rel\.ro)|\.bss|\.tdata|\.tbss)", line)
             and not re.search(r"DW\.ref", line)]
verdict.check(not variables, "jit/ has variables outside functions:\n" + "\n".join(variables[:10]))
verdict.close()
