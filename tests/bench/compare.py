"""Two files of times side by side: how many times faster ours is than the best peer, case by case and by section.

    python3 tests/bench/compare.py PEERS.csv OURS.csv

Columns of both: section,case,peer,us,rate,unit, as ngtool bench --csv writes them. A ratio is the best peer's
microseconds by ours: above 1, ours is faster. Both must come from one machine. Cases that only one file has are named.
"""
import csv
import math
import sys
from collections import defaultdict


def read_times(path):
    """{(section, case): (microseconds, peer)}, the fastest peer of each."""
    best = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key, us = (row["section"], row["case"]), float(row["us"])
            if key not in best or us < best[key][0]:
                best[key] = (us, row["peer"])
    return best


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    peers, ours = read_times(sys.argv[1]), read_times(sys.argv[2])
    ratios = defaultdict(list)
    for key in (key for key in ours if key in peers):
        ratio = peers[key][0] / ours[key][0]
        ratios[key[0]].append(ratio)
        print(f"{key[0]:6s} {key[1]:44s} {ours[key][0]:12.2f} us  {ratio:6.2f}x {peers[key][1]}")
    for section, all_of_it in sorted(ratios.items()):
        mean = math.exp(sum(map(math.log, all_of_it)) / len(all_of_it))
        print(f"{section:6s} {len(all_of_it)} cases: geometric mean {mean:.2f}x, worst {min(all_of_it):.2f}x")
    sections = {section for section, _ in ours}
    for what, names in (("the peers'", [k for k in peers if k[0] in sections and k not in ours]),
                        ("ours", [k for k in ours if k not in peers])):
        if names:
            print(f"{len(names)} cases are {what} alone:", *(f"  {case}" for _, case in names[:5]), sep="\n")


if __name__ == "__main__":
    main()
