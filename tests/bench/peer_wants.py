"""What libng wants to reach on a CPU beside its peers, and what a run of cpu_peers.py found: a line for each."""
import math

BOUND_BY_MEMORY = ("x+y", "a*x+b", "column sums")
CHEAP = ("20 operations",)
HALVES = 1 / 4          # of the bytes of an f32 array, as cpu_peers.py makes them
LONG = ("gelu_chain", "20 operations", "batchnorm rows", "softmax rows")


def best(found, name, threads=None):
    """The least time of the peers whose name begins so."""
    return min((us for (peer, t), us in found.items() if peer.startswith(name) and threads in (None, t)), default=None)


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


class Report:
    def __init__(self, found):
        self.found = found

    def of(self, section):
        return {case: times for (where, case), times in self.found.items() if where == section}

    def line(self, what, value, wanted, at_most=False):
        if value is None:
            return
        reached = value <= wanted if at_most else value >= wanted
        print(f"{'reached' if reached else 'MISSED ':8s} {what:64s} {value:8.2f}  wanted {'<=' if at_most else '>='} {wanted}")

    def ratio(self, what, ours, theirs, wanted):
        if ours and theirs:
            self.line(what, theirs / ours, wanted)

    def beside(self, what, ours, theirs):
        """Nothing is wanted of it, but who reads a mean asks for it."""
        if ours and theirs:
            print(f"{'':8s} {what:64s} {theirs / ours:8.2f}")

    def fused(self):
        copy = best(self.found.get(("memory", "copy 256MB"), {}), "C", 2)
        arrays = {"x+y": 3, "a*x+b": 2, "column sums": 1}
        for case, times in self.of("fused").items():
            ours, name = best(times, "ng"), case.rsplit(" ", 1)[0]
            if copy and name in BOUND_BY_MEMORY:
                size = 1 if case.endswith("f32") else HALVES
                self.line(f"fused {case}: share of a copy's bandwidth", size * arrays[name] / 2 * copy / ours, 0.9)
            self.ratio(f"fused {case}: numpy's time by ours", ours, best(times, "numpy"), 8 if name in LONG else 1)
            self.ratio(f"fused {case}: numexpr's time by ours", ours, best(times, "numexpr"), 1.3)

    def cache(self):
        for case, times in self.of("cache").items():
            ours, loop = best(times, "ng"), best(times, "C -O3")
            self.ratio(f"cache {case}: numpy's time by ours", ours, best(times, "numpy"), 0.85)
            if loop:
                plain = times["C -O3", 1]
                self.line(f"cache {case}: our time by the C loop's", ours / plain, 2 if case.startswith(CHEAP) else 1.3, at_most=True)
                self.beside(f"cache {case}: the same by one with f64 sums", times.get(("C -O3, f64 sums", 1)), ours)

    def products(self):
        gemm = self.of("gemm")
        for letter in "sd":
            pairs = [(best(t, "ng", 2), best(t, "openblas", 2), best(t, "ng", 1)) for case, t in gemm.items() if case.startswith(letter)]
            ratios = [theirs / ours for ours, theirs, _ in pairs if theirs]
            self.line(f"{letter}gemm: openblas's time by ours, geometric mean", mean(ratios), 0.95)
            for case, times in gemm.items():
                if case.startswith(letter):
                    self.line(f"{case}: one thread's time by two's", best(times, "ng", 1) / best(times, "ng", 2), 1.8)
                    self.beside(f"{case}: the same for openblas", best(times, "openblas", 2), best(times, "openblas", 1))
                    self.beside(f"{case}: openblas's time by ours", best(times, "ng", 2), best(times, "openblas", 2))
        for case, times in self.of("narrow").items():
            self.ratio(f"{case}: onednn's time by ours", best(times, "ng", 2), best(times, "onednn", 2), 0.9)
        for case, times in self.of("conv").items():
            self.ratio(f"conv {case}: onednn's nchw time by ours", best(times, "ng", 2), best(times, "onednn nchw"), 1.2)
            self.ratio(f"conv {case}: onednn's best, with reorders, by ours", best(times, "ng", 2), best(times, "onednn best"), 0.9)

    def rest(self):
        for times in self.of("small").values():
            self.line("ng_prog_run of a small program, us", best(times, "ng"), 1, at_most=True)
        for case, times in self.of("index").items():
            self.ratio(f"{case}: numpy's time by ours", best(times, "ng", 2), best(times, "numpy"), 5 if case.startswith("put") else 1)
        for times in self.of("digits").values():
            theirs = best(times, "torch")
            if theirs:
                self.line("digits: our time by torch's", best(times, "ng") / theirs, 1.5, at_most=True)


def report(found):
    lines = Report(found)
    print()
    lines.fused(), lines.cache(), lines.products(), lines.rest()
