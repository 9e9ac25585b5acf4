"""The library without its symbols is at most 3 MB: small enough to ship inside anything."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from house import Verdict

LIMIT_BYTES = 3_000_000

verdict = Verdict()
with tempfile.TemporaryDirectory() as folder:
    copy = Path(folder) / "libng.so"
    shutil.copy(Path(sys.argv[1]).resolve(), copy)
    subprocess.run(["strip", "--strip-unneeded", str(copy)], check=True)
    size = copy.stat().st_size
print(f"{size} bytes stripped")
verdict.check(size <= LIMIT_BYTES, f"{size} bytes, {LIMIT_BYTES} is the limit")
verdict.close()
