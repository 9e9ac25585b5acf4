"""A file name stands once in the tree, in snake_case, and every source is named by its meson.build."""
import re

from house import Verdict, read, tree

# Each backend folder holds the same names; each folder is built by its own page.
REPEATED = {"meson.build", "README.md"}
BUILDS = {path for path in tree() if path.name == "meson.build"}

verdict, seen = Verdict(), {}
for path in tree():
    text = str(path)
    verdict.check(re.fullmatch(r"[A-Za-z0-9_.]+", path.name) and (path.suffix not in {".cc", ".c", ".py"} or path.name == path.name.lower()),
                  f"{path}: file names are snake_case")
    if path.name not in REPEATED and not text.startswith("lib/backend/"):
        other = seen.setdefault(path.name, path)
        verdict.check(other == path, f"{path}: {other} has that name")
    if path.suffix in {".c", ".cc"}:
        build = next((p / "meson.build" for p in path.parents if p / "meson.build" in BUILDS), None)
        named = build and re.search(rf"(?<![\w]){re.escape(path.stem)}(?![\w])", read(build))
        verdict.check(named, f"{path}: no meson.build names it, so nothing compiles it")
verdict.close()
