"""ng.h says what the tables say: the block of words is fresh, its dtypes are those of dtypes.def, no row is half filled."""
import keyword
import re
import subprocess
import sys

from house import ROOT, Verdict, read
import api

CODES = {"Int": 0, "Uint": 1, "Float": 2, "Bool": 6}                        # DLPack's
NARROW = {"bf16": 4, "e4m3": 10, "e5m2": 12}
CPP_WORDS = {"and", "or", "not", "xor", "new", "delete", "int", "float", "double", "class", "this", "switch", "default", "union"}

verdict, records = Verdict(), api.read_api()
said = subprocess.run([sys.executable, "-B", str(ROOT / "bindings/header.py"), "--check"], capture_output=True, text=True)
verdict.check(said.returncode == 0, said.stdout + said.stderr)

constants = records.enums["ng_dtype"]
verdict.check(sorted(constants) == sorted(d.constant for d in records.dtypes), "ng_dtype_ and dtypes.def do not list the same types")
for dtype in records.dtypes:
    code = NARROW.get(dtype.name, CODES[dtype.kind])
    bits = 8 * dtype.bytes
    verdict.check(constants.get(dtype.constant) == (code | bits << 8 | 1 << 16), f"{dtype.constant}: DLPack has another number")
    sound = dtype.kind != "Float" or 1 + dtype.exponent + dtype.mantissa == bits
    verdict.check(sound, f"dtypes.def, {dtype.name}: sign, {dtype.exponent} and {dtype.mantissa} bits are not {bits}")

declared = {function.name for function in records.functions}
names = [word.name for word in records.words]
for word in records.words:
    verdict.check(names.count(word.name) == 1, f"ops.def: {word.name} stands twice")
    verdict.check(word.name not in CPP_WORDS and not keyword.iskeyword(word.name), f"ops.def: {word.name} is a word of a language")
    verdict.check(bool(word.summary), f"ops.def: {word.name} has no summary")
    if word.kind != "NODE":
        verdict.check(f"ng_{word.name}" in declared, f"ng.h has no ng_{word.name}")
        verdict.check(bool(word.numpy) and word.ulp >= 0, f"ops.def: {word.name} has no numpy column or no bound")
    if word.kind == "MAP":
        texts = len(word.derivative.split(";")) if word.derivative else 0
        verdict.check(texts in (0, word.arity), f"ops.def: {word.name} has {word.arity} operands and {texts} derivatives")

# What a program may call from a real-time thread has no excuse to wait.
for function in records.functions:
    verdict.check(not (function.realtime and function.blocks), f"{function.name} is both NG_RT and NG_BLOCKS")
    verdict.check(function.returns != "ng_status" or not function.blocks or "err" in [p.name for p in function.params] or
                  function.name == "ng_ctx_trim", f"{function.name} waits and has no err to say why it failed")
verdict.check(re.search(r"soname is libng\.so\.1\b", read("include/ng.h")), "ng.h does not name its soname")
verdict.close()
