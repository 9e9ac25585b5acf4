"""How the NumPy tests compare and count: exactly, or in units of the last place; a verdict a row and type."""
import sys

import numpy as np

import formats
from formats import WIDE


class Cases:
    """Counts verdicts and says where the first difference of a failed one is."""

    def __init__(self):
        self.passed = self.failed = 0

    def verdict(self, name, fault):
        if fault:
            self.failed += 1
            print(f"{name}: {fault}")
        else:
            self.passed += 1

    def attempt(self, name, body):
        """Runs a case; an exception of the library or of the reference is a fault too."""
        try:
            with np.errstate(all="ignore"):
                fault = body()
        except Exception as problem:  # noqa: BLE001 - every kind is a failed case
            fault = f"{type(problem).__name__}: {problem}"
        self.verdict(name, fault)

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed or not self.passed else 0)


def first_fault(bad, got, want, operands, what):
    """A sentence about the first element that differs."""
    at = np.unravel_index(int(np.argmax(bad)), bad.shape)
    shown = ", ".join(str(np.broadcast_to(o, bad.shape)[at]) for o in operands)
    return f"{int(bad.sum())} of {bad.size} differ: of ({shown}) it gives {got[at]!s}, should be {want[at]!s}{what}"


def exactly(got, want, operands=(), signs=True):
    """Equal to the bit, but for the payload of NaN; the sign of zero only where signs says so."""
    if got.shape != want.shape:
        return f"shape {got.shape}, should be {want.shape}"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, should be {want.dtype}"
    if got.dtype.kind == "f":
        bad = ~((got == want) | (np.isnan(got) & np.isnan(want)))
        if signs:
            bad |= (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
    else:
        bad = got != want
    return first_fault(bad, got, want, operands, "") if bad.any() else None


def within(name, got, want, bound, operands=(), scale=None):
    """got within bound units of the last place of want (longdouble); scale: what the unit is taken of instead."""
    if got.shape != want.shape:
        return f"shape {got.shape}, should be {want.shape}"
    want = np.asarray(want, WIDE)
    top = formats.largest(name)
    beyond = np.ldexp(WIDE(1), formats.bias(name) + 1)                   # where infinity would stand if it were a number
    unit = formats.unit(name, want if scale is None else np.maximum(np.abs(want), scale))
    place = lambda v: np.where(np.isinf(v), np.copysign(beyond, v), v)   # noqa: E731
    near = np.clip(want, -beyond, beyond)
    bad = ~(np.abs(place(got.astype(WIDE)) - near) <= bound * unit)
    bad = np.where(np.isinf(want), got != want, bad)                     # a true infinity has no neighbours
    bad = np.where(np.isnan(want), ~np.isnan(got), bad | (np.isnan(got) & ~np.isnan(want)))
    if not bad.any():
        return None
    far = np.nanmax(np.where(bad & np.isfinite(want) & (np.abs(want) <= top), np.abs(place(got.astype(WIDE)) - near) / unit, 0))
    return first_fault(bad, got, want, operands, f"; up to {float(far):.4g} ulp, {bound:g} allowed")
