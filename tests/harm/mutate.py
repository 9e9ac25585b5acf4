"""Breaks the library in one place at a time, in a copy of the tree, and says whether the test that should fall falls.

mutate.py --list               what is broken, where, and the case that falls
mutate.py NUMBER..             these; mutate.py --all, all of them
    --into FOLDER              the copy, made there if it is not and kept: the next call builds only what changed

The rows below are done by hand, not by chance: each is a slip that a person could make and that the type system lets through.
A row whose lines are not in the tree any more says so; it then has to be written anew. Takes a minute a row, and is in no suite.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Mutant:
    what: str          # is broken
    path: str
    old: str           # stands there once
    new: str
    test: str          # its name in Meson
    case: str          # what the failure says, as the beginning of a case's name or of a line
    compiles: tuple = ()   # of a header or table: the sources whose code changes; none: whoever includes it


# Who reads the table of operators: the inline one of a test that is not compiled anew would be the one that is linked.
TEXTS = ("jit/lex.cc", "jit/names.cc", "jit/parse.cc", "jit/parse_calls.cc", "jit/parse_windows.cc", "jit/parse_words.cc", "jit/print.cc",
         "jit/print_forms.cc", "tests/jit/parse_test.cc")

MUTANTS = [
    Mutant("a row: x log(y) is 0 at x = 0 even where y is NaN", "jit/ops.def",
           "x == K(0) && y == y ? K(0) : x * F(log)(y)", "x == K(0) ? K(0) : x * F(log)(y)",
           "maps", "xlogy", ("lib/backend/cpu/maps_f32.cc", "lib/backend/cpu/maps_f64.cc", "jit/number.cc")),
    Mutant("a derivative: fmax gives to y where y is NaN and x was taken", "jit/ops.def",
           '"where((x > y) | isnan(y), d, 0); where((x > y) | isnan(y), 0, d)"', '"where(x > y, d, 0); where(x > y, 0, d)"',
           "grad_rows_test", "rows: ties", ("jit/ops.cc",)),
    Mutant("a derivative: of conv_dx by its filter's partner, padded with the value instead of zeros", "jit/grad_product.cc",
           "if (by_b) s.give(n, 1, build::conv(g, d, a, &desc));", "if (by_b) s.give(n, 1, build::conv(g, d, a, &padded));",
           "grad_test", "products: convolution"),
    Mutant("a stride: parts of a long scan go to consecutive places of a result that has gaps", "lib/backend/cpu/scan.cc",
           "{PARTS_BESIDE, length, length * l.y_step, &start[part]}", "{PARTS_BESIDE, length, length, &start[part]}",
           "movement_test", "scan: a line long"),
    Mutant("a bound: taps of a dilated window inside the image are counted one short", "lib/backend/cpu/pool_walk.cc",
           "(high - at + dilate - 1) / dilate : 0", "(high - at) / dilate : 0",
           "pool_test", "pool: dilation"),
    Mutant("an alias edge: an epilogue may write over what its product still reads", "jit/ordering.cc",
           "if (read.contains(alias)) return std::nullopt;", "if (read.contains(alias)) continue;",
           "schedule_test", "aliases: what reads elsewhere"),
    Mutant("write after read: who reads an aliased argument need not come before who writes it", "jit/ordering.cc",
           "for (const int32_t w : writers) edges.push_back({w, i});", "for (const int32_t w : writers) (void)w;",
           "schedule_test", "aliases: all who read"),
    Mutant("a life: what an epilogue writes may lie where its product reads", "jit/ordering.cc",
           "plan.steps[i].runs_with_product() ? i - 1 : i", "plan.steps[i].runs_with_product() ? i : i",
           "schedule_test", "products: element-wise"),
    Mutant("a rounding: of 64-bit integers the bits that are cut off are forgotten", "lib/backend/cpu/number_codes.h",
           "((u & 0xfff) != 0 ? uint64_t(1) << 12 : 0)", "((u & 0xfff) != 0 ? uint64_t(0) : 0)",
           "conversions_test", "conversions: integers round", ("lib/backend/cpu/isa_table.cc",)),
    Mutant("interning: of two constants whose hashes meet, the second is the first", "jit/graph.cc",
           "a.weak != b.weak || a.value != b.value) return false;", "a.weak != b.weak) return false;",
           "graph_test", "intern"),
    Mutant("a length check: what a program may not fall below is not looked at when it runs", "lib/run.cc",
           "if (v < c.low.value(variables) || v > c.high.value(variables))", "if (v > c.high.value(variables))",
           "lengths_test", "P5: what must not fall below"),
    Mutant("the overlap test: positions along a negative stride are counted the wrong way", "lib/overlap.cc",
           "term = {-stride, -term.high, -term.low};", "term = {-stride, term.low, term.high};",
           "views_test", "overlaps: by the elements"),
    Mutant("a handle's generation: a slot that has used them all up begins again", "lib/handle.cc",
           "if (after) push_free(", "push_free(",
           "handle_test", "handle: a slot whose generations"),
    Mutant("a scope's release: its expressions are no more in it, and live on", "lib/scope.cc",
           "        release_handle<const Node>(handle);\n", "",
           "sharing_test", "T2: releasing a scope"),
    Mutant("scopes: an expression belongs to the oldest among its operands'", "lib/builder.cc",
           "if (s && (!scope_ || s->age() > scope_->age()))", "if (s && (!scope_ || s->age() < scope_->age()))",
           "sharing_test", "T1: an expression belongs"),
    Mutant("the workspace's size: that of the temporary placed last", "lib/layout.cc",
           "checked(std::max(out.bytes, at + bytes), 1)", "checked(at + bytes, 1)",
           "layout_test", "layout: temporaries"),
    Mutant("random's counter: the step's upper half does not count", "lib/backend/cpu/random_loops.h",
           "c3 = uint32_t(step >> 32);", "c3 = 0;",
           "folds_test", "random: the words", ("lib/backend/cpu/isa_table.cc",)),
    Mutant("a fold's identity: the greatest of nothing begins at the least positive float", "lib/backend/cpu/walk.h",
           "T(-L::infinity()) : L::lowest();", "L::min() : L::lowest();",
           "movement_test", "scan, segment and argsort", ("lib/backend/cpu/put.cc", "lib/backend/cpu/scan.cc")),
    Mutant("a pool's tie: the last of equals is the greatest", "lib/backend/cpu/gemm_tile.h",
           "(x[j] > best[j])", "(x[j] >= best[j])",
           "pool_test", "pool: ties", ("lib/backend/cpu/gemm_isa.cc",)),
    Mutant("a convolution's pad: channels by themselves are padded with zeros whatever was asked for", "lib/backend/cpu/conv.cc",
           "    d.fill = fill_bits(x.type, window.pad_value);\n", "",
           "conv_test", "conv: padding with another value"),
    Mutant("a scan's border: what is left behind the parts of a long line begins anew", "lib/backend/cpu/scan.cc",
           "flags, {1, 0, 0, &start[PARTS]}", "flags, {1, 0, 0, nullptr}",
           "running_test", "scan: long lines"),
    Mutant("precedence: ^ binds tighter than &", "jit/lex.h",
           "Compare, Bar, Caret, Ampersand, Shift", "Compare, Bar, Ampersand, Caret, Shift",
           "parse_test", "precedence", TEXTS),
    Mutant("a saved program's check: aliases of some outputs only", "jit/serial_read.cc",
           "aliases == 0 || aliases == n,", "aliases <= n,",
           "serial_bytes_test", "serial: aliases are of all"),
    Mutant("a DLPack field: what may only be read goes out as if it could be written", "lib/dlpack.cc",
           "tensor->is_readonly() ? DL_READ_ONLY : 0;", "0;",
           "views_test", "dlpack: what may only be read"),
    Mutant("growth: a workspace that was made or grew stays claimed", "lib/workspace.cc",
           "    p.busy.store(false, std::memory_order_release);\n", "",
           "program_test", "workspaces: as many claims"),
    Mutant("sums down rows: the end of a row begins its sums anew", "lib/backend/cpu/sum_rows.h",
           "    if (TO_SUMS) __builtin_memcpy(all, sums + i, left * 8);\n", "",
           "folds_test", "folds: sums down rows", ("lib/backend/cpu/isa_table.cc",)),
    Mutant("exp by sixteens: half of a block's rest", "lib/backend/cpu/maps_f32.cc",
           "(1u << (count - i)) - 1 : 0xffff);\n        Floats v[] = {of.argument(i, rest)};",
           "(1u << (count - i)) / 2 : 0xffff);\n        Floats v[] = {of.argument(i, rest)};",
           "maps_test", "maps: one operand for the whole block", ("lib/backend/cpu/maps_f32.cc",)),
    Mutant("folds in parts: points that wait for a fold are cut from it", "jit/fold_parts.cc",
           "if (kernel_.values[v].kind == ValueKind::Fold) return false;", "",
           "finish_emulation_test", "epilogues: texts of portable"),
    Mutant("traffic: what the last row has left in the outbox is not written", "lib/backend/cpu/fused.cc",
           "    empty_outbox(frame);\n", "",
           "traffic_test", "traffic: rows of functions"),
    Mutant("quotients by one number: without their last correction", "lib/backend/cpu/divide_wide.h",
           "return mad(_mm512_fnmadd_ps(near, number_, x), inverse_, near);", "return near;",
           "math_test", "functions: quotients by one number", ("lib/backend/cpu/maps_f32.cc", "lib/backend/cpu/chain_f32.cc")),
    Mutant("gelu by vectors: the rest of its square is forgotten", "lib/backend/cpu/curves_wide.h",
           "put_exp(power, rest);", "put_exp(power);",
           "math_test", "functions: dense sweeps", ("lib/backend/cpu/maps_f32.cc", "lib/backend/cpu/chain_f32.cc")),
    Mutant("pairing: where an output lies decides with what reads", "jit/kernel.h",
           "        if (!stride.is_constant()) return false;\n    return true;", "        if (!stride.is_constant()) return true;\n    return true;",
           "evaluation_test", "E6: an output that lies anywhere"),
    Mutant("stores by parts: a row begins where the block does", "lib/backend/cpu/plan.cc",
           "return {extent - position % extent, part[1 + access]};", "return {extent + position * 0, part[1 + access]};",
           "evaluation_test", "E6: an output that lies anywhere"),
]


def numbered(argument):
    number = int(argument)
    if not 1 <= number <= len(MUTANTS):
        raise argparse.ArgumentTypeError(f"{argument} is no row, there are 1 to {len(MUTANTS)}")
    return number


def copied(tree):
    """The tree without what builds left in it, and a build beside it."""
    if not tree.joinpath("meson.build").exists():
        def skipped(folder, names):
            is_top = Path(folder) == ROOT
            return [n for n in names if n == "__pycache__" or (is_top and n.startswith(("build", ".git")))]
        shutil.copytree(ROOT, tree, ignore=skipped, dirs_exist_ok=True)
    build = tree / "build"
    if not build.joinpath("build.ninja").exists():
        subprocess.run(["meson", "setup", "-Dtests=enabled", "-Dcuda=disabled", str(build), str(tree)], check=True, stdout=subprocess.DEVNULL)
    return build


def ninja(build, targets):
    """What the compiler says against it, or nothing."""
    made = subprocess.run(["ninja", "-C", str(build), "-j", str(os.cpu_count()), *targets], capture_output=True, text=True)
    return "" if made.returncode == 0 else made.stdout[-3000:]


def targets_of(build, test):
    """What a test needs: its program, or of a script the library."""
    named = subprocess.run(["ninja", "-C", str(build), "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(":")[0] for line in named.splitlines()]
    return [line for line in lines if line.startswith("tests/") and line.endswith("/" + test)] or [next(l for l in lines if l.startswith("lib/libng.so."))]


def tested(build, test):
    """Whether a test fell, and what it said."""
    said = subprocess.run(["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs", test], capture_output=True, text=True)
    log = build / "meson-logs" / "testlog.txt"
    return said.returncode != 0, log.read_text(errors="replace") if log.exists() else said.stdout


def tried(m, tree, build):
    """The mutant's verdict as a line; the tree is as it was afterwards."""
    source = tree / m.path
    text, stamp = source.read_text(), source.stat()
    if text.count(m.old) != 1:
        return False, f"does not match: {m.path} has these lines {text.count(m.old)} times: {m.old.strip()}"
    targets = targets_of(build, m.test)
    fault = ninja(build, targets)
    if fault:
        return False, f"the tree itself does not build:\n{fault}"

    def touched():
        for name in m.compiles or [m.path]:
            (tree / name).touch()

    try:
        source.write_text(text.replace(m.old, m.new))
        if m.compiles:                  # its own time stays, so that only these sources are compiled
            os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        touched()
        fault = ninja(build, targets)
        if fault:
            return False, f"does not compile:\n{fault}"
        fell, said = tested(build, m.test)
    finally:
        source.write_text(text)
        if m.compiles:
            os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        touched()
    if not fell:
        return False, f"SURVIVES {m.test}"
    if m.case not in said and "killed by signal" not in said:
        return False, f"{m.test} falls, but not in {m.case}:\n{said[said.find('====='):][:3000]}"
    return True, f"falls in {m.test}, {m.case}"


def main():
    reader = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    reader.add_argument("--list", action="store_true", help="the rows, and whether their lines are in the tree")
    reader.add_argument("--all", action="store_true", help="all rows")
    reader.add_argument("--into", type=Path, help="where the copy is, or will be")
    reader.add_argument("rows", nargs="*", type=numbered, metavar="NUMBER")
    asked = reader.parse_args()
    rows = range(1, len(MUTANTS) + 1) if asked.all or asked.list else asked.rows
    if not rows:
        reader.error("which rows? --list says what there is")
    if asked.list:
        stale = 0
        for number in rows:
            m = MUTANTS[number - 1]
            fits = (ROOT / m.path).read_text().count(m.old) == 1
            stale += not fits
            print(f"{number:2} {m.what}\n   {m.path}: {m.test}, {m.case}{'' if fits else ' (DOES NOT MATCH THE TREE)'}")
        sys.exit(1 if stale else 0)
    with tempfile.TemporaryDirectory() as folder:
        tree = (asked.into or Path(folder) / "tree").resolve()
        build = copied(tree)
        fine = 0
        for number in rows:
            good, verdict = tried(MUTANTS[number - 1], tree, build)
            fine += good
            print(f"{number:2} {MUTANTS[number - 1].what}\n   {verdict}", flush=True)
    print(f"{fine} passed, {len(rows) - fine} failed")
    sys.exit(0 if fine == len(rows) else 1)


if __name__ == "__main__":
    main()
