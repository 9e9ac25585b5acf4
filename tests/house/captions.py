"""The first line of every file says what that file is for, in a sentence that stands on no other."""
import re

from house import CODE, ROOT, Verdict, read, tree

OPENERS = {".py": r'"""(.+)', ".c": r"(?:/\*|//) (.+)", ".h": r"(?:/\*|//) (.+)"}


def caption(path):
    """The sentence on the first line (the second, below #!), or None."""
    lines = read(path).split("\n")
    line = lines[1] if lines[0].startswith("#!") else lines[0]
    pattern = r"# (.+)" if path.name == "meson.build" or not path.suffix else OPENERS.get(path.suffix, r"// (.+)")
    found = re.match(pattern, line)
    return found[1].strip(' "*/') if found else None


verdict, seen = Verdict(), {}
builds = [path for path in tree() if path.name == "meson.build"]
scripts = [(ROOT / name).relative_to(ROOT) for name in ("dev", ".ci/run", "meson.build") if (ROOT / name).exists()]
for path in tree(*CODE) + builds + scripts:
    sentence = caption(path)
    if not sentence or len(sentence.split()) < 4:
        verdict.check(False, f"{path}: its first line should be a comment with a sentence about this file")
        continue
    other = seen.setdefault(re.sub(r"\W+", " ", sentence).lower(), path)
    verdict.check(other == path, f"{path}: its first line stands on {other} too")
verdict.close()
