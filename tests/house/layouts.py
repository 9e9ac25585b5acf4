"""Every struct of ng.h lies in memory as its fields say, without a hole: so a binding may write it down from the records."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from house import ROOT, Verdict
import api

SIZES = {"int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8, "double": 8, "char": 1, "uint8_t": 1}


def size_of(kind, typedefs):
    """(alignment, bytes) of a C type on a machine with 64-bit addresses."""
    array = re.fullmatch(r"(.*) \[(\d+)\]", kind)
    if array:
        align, size = size_of(array[1], typedefs)
        return align, size * int(array[2])
    if "*" in kind:
        return 8, 8
    if kind in typedefs:
        return size_of(typedefs[kind], typedefs)
    return SIZES[kind], SIZES[kind]


def layout(fields, typedefs):
    """[(name, offset, bytes)], and faults: holes between fields and behind the last."""
    at, found, widest, faults = 0, [], 1, []
    for item in fields:
        align, size = size_of(item.type, typedefs)
        start = -(-at // align) * align
        if start != at:
            faults.append(f"a hole of {start - at} bytes before {item.name}")
        found.append((item.name, start, size))
        at, widest = start + size, max(widest, align)
    if at % widest:
        faults.append(f"{-at % widest} bytes of padding at its end")
    return found, at, faults


verdict, records = Verdict(), api.read_api()
lines = ["#include <assert.h>", "#include <stddef.h>", "#include <ng.h>", 'static_assert(sizeof(ng_error) == 256, "for ever");']
for name, fields in records.structs.items():
    places, total, faults = layout(fields, records.typedefs)
    verdict.check(not faults, f"{name}: " + "; ".join(faults))
    verdict.check(name == "ng_error" or (fields[0].name, fields[0].type) == ("size", "uint32_t"), f"{name} does not begin with its size")
    lines.append(f'static_assert(sizeof({name}) == {total}, "{name}");')
    lines += [f'static_assert(offsetof({name}, {field}) == {at} && sizeof((({name} *)0)->{field}) == {size}, "{name}.{field}");'
              for field, at, size in places]
with tempfile.TemporaryDirectory() as folder:
    source = Path(folder) / "layouts.c"
    source.write_text("\n".join(lines) + "\n")
    compiler = sys.argv[1] if len(sys.argv) > 1 else "cc"
    said = subprocess.run([compiler, "-std=c11", "-fsyntax-only", f"-I{ROOT / 'include'}", str(source)], capture_output=True, text=True)
    verdict.check(said.returncode == 0, said.stderr)
verdict.close()
