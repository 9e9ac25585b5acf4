"""Times several ways to do one thing in turns, so that what else the machine does hits all of them alike; and keeps the rows."""
import csv
import os
import time
from dataclasses import dataclass
from typing import Callable

ROUND_S = 0.02          # of one peer, at least
PIECE_S = 0.001         # a round is cut into pieces, of which the shortest counts: who is interrupted loses milliseconds
SETTLE_S = 0.03         # OpenBLAS's and OpenMP's threads wait busily for about 25 ms after their work
ALL_CORES = os.sched_getaffinity(0)
ROUNDS, ENOUGH_S = 15, 0.7


@dataclass
class Peer:
    name: str
    threads: int
    repeat: Callable        # count -> seconds of so many calls
    is_placed: bool = True  # its threads are there already, and its first one works too


def place_threads(apart):
    """The main thread on the first core and all others on the second; or everybody anywhere. Busy machines put threads that
    wake beside each other on one core, which idle ones do not."""
    for task in os.listdir("/proc/self/task"):
        cores = {0} if int(task) == os.getpid() else {1}
        try:
            os.sched_setaffinity(int(task), cores if apart else ALL_CORES)
        except ProcessLookupError:
            pass


def calls(function):
    """The repeat of a Python function."""
    def repeat(count):
        start = time.perf_counter()
        for _ in range(count):
            function()
        return time.perf_counter() - start
    return repeat


class Stopwatch:
    """Rows of section, case, peer, microseconds, rate, unit; the rates of a case are its work by time."""

    def __init__(self, only=""):
        self.rows, self.only = [], only
        self.hold = None                    # keeps the second core from others

    def round(self, peer, expected_s):
        """Seconds of one call."""
        time.sleep(SETTLE_S)
        count = max(1, int(PIECE_S / max(expected_s, 1e-7)))
        pieces = max(1, int(ROUND_S / max(count * expected_s, 1e-7)))
        if self.hold:
            place_threads(peer.is_placed)
            self.hold(int(peer.threads == 1))
        seconds = min(peer.repeat(count) / count for _ in range(pieces))
        if self.hold:
            self.hold(0)
        return seconds

    def measure(self, section, case, work, unit, peers):
        """Work: bytes or operations of a call. {peer's name and threads: microseconds}."""
        if self.only not in f"{section} {case}":
            return {}
        best = {}
        for turn in range(ROUNDS):
            for peer in peers:
                key = peer.name, peer.threads
                if turn == 0:
                    best[key] = peer.repeat(1)
                if turn == 0 or (turn + 1) * best[key] < ENOUGH_S:
                    best[key] = min(best[key], self.round(peer, best[key]))
        for (name, threads), seconds in best.items():
            self.emit(section, case, f"{name}, {threads} thread{'s' if threads > 1 else ''}", seconds * 1e6, work, unit)
        return {key: seconds * 1e6 for key, seconds in best.items()}

    def emit(self, section, case, peer, us, work, unit):
        rate = work / us / 1e3 if work else 0
        self.rows.append((section, case, peer, us, rate, unit))
        print(f"{section:9s} {case:34s} {peer:28s} {us:12.2f} us {rate:9.2f} {unit}", flush=True)

    def write(self, path):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow("section case peer us rate unit".split())
            writer.writerows((*row[:3], f"{row[3]:.4f}", f"{row[4]:.6g}", row[5]) for row in self.rows)
