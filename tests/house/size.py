"""The library without its symbols is small enough to ship inside anything: 3 MB for the processor alone, 20 MB with all devices."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from house import Verdict

ALL_DEVICES_BYTES, PROCESSOR_BYTES = 20_000_000, 3_000_000

verdict = Verdict()
for library, limit in zip(sys.argv[1:], (ALL_DEVICES_BYTES, PROCESSOR_BYTES)):
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "library.so"
        shutil.copy(Path(library).resolve(), copy)
        subprocess.run(["strip", "--strip-unneeded", str(copy)], check=True)
        size = copy.stat().st_size
    print(f"{Path(library).name}: {size} bytes stripped")
    verdict.check(size <= limit, f"{library}: {size} bytes, {limit} is the limit")
verdict.close()
