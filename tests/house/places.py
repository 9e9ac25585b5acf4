"""Each function that texts for NVRTC have says that it runs on a device: NVRTC refuses others, which no compiler of this machine does."""
import re

from house import Verdict, read

verdict = Verdict()
build = read("lib/backend/cuda/meson.build")
lists = re.findall(r"'gemm_\w+_source': \[([^\]]*)\]", build)
verdict.check(len(lists) >= 3, "the headers that texts are made of were not found in lib/backend/cuda/meson.build")
headers = sorted({f"kernels/{name}" for names in lists for name in re.findall(r"'([^']+)'", names)})
for path in headers:
    # In kernels a function is a line of its own, behind its template's.
    wrong = [line for line in read(path).splitlines() if re.match(r"(template <[^>]*> )?(constexpr|inline|static)\b[^=;]*\w\(", line) and not line.startswith("static_assert")]
    verdict.check(not wrong, f"{path}: for NVRTC these want DEVICE or ANYWHERE:\n" + "\n".join(wrong))
verdict.close()
