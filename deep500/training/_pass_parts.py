"""What a pass over a data set gives, before it is a record; and that of all ranks as that of one process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from deep500.training.statistics import PassRecord

__all__ = ["merged_steps", "merged_tests", "record_of"]

#: Losses and sizes of minibatches, in order, and how many ranks had one; right classifications and how many were
#: counted; seconds.
Parts = dict[str, Any]


def record_of(parts: Parts, *, complete: bool) -> PassRecord:
    """Return the record of a pass.

    Args:
        parts: ``losses``, ``sizes``, ``correct``, ``counted`` and ``elapsed_s``.
        complete: Whether it ended as planned.
    """
    losses, sizes, samples = parts["losses"], parts["sizes"], sum(parts["sizes"])
    loss = None
    if losses and len(losses) == len(sizes):
        # Weighted, so that a smaller last minibatch counts as its samples do.
        loss = _sum([value * size for value, size in zip(losses, sizes, strict=True)]) / samples
    return PassRecord(
        batches=len(sizes),
        samples=samples,
        duration_s=parts["elapsed_s"],
        loss=loss,
        accuracy_percent=100.0 * parts["correct"] / parts["counted"] if parts["counted"] else None,
        step_losses=losses,
        complete=complete,
    )


def merged_steps(ranks: Sequence[Parts]) -> Parts:
    """Return a pass over the training set, in which all ranks took the same steps.

    A step's minibatch is that of all ranks together, its loss the mean over their samples. Of ranks that were lost
    since then the size is known, which is that of the others, and the loss is not.
    """
    steps = range(min(len(parts["sizes"]) for parts in ranks))
    sizes = [[parts["sizes"][step] for parts in ranks] for step in steps]
    losses = []
    if all(len(parts["losses"]) == len(parts["sizes"]) for parts in ranks):
        values = [[parts["losses"][step] for parts in ranks] for step in steps]
        losses = [
            _sum([value * size for value, size in zip(of_step, counts, strict=True)]) / sum(counts)
            for of_step, counts in zip(values, sizes, strict=True)
        ]
    lost = [max(0, count - len(ranks)) for count in ranks[0]["ranks"]]
    totals = [sum(counts) + missing * counts[0] for counts, missing in zip(sizes, lost, strict=False)]
    return {**_totals(ranks), "losses": losses, "sizes": totals}


def merged_tests(ranks: Sequence[Parts]) -> Parts:
    """Return a test of which the ranks took the minibatches in turn; its losses are in the order of one process."""
    merged: Parts = _totals(ranks)
    for kind in ("losses", "sizes"):
        lists = [parts[kind] for parts in ranks]
        turns = range(max(map(len, lists)))
        merged[kind] = [values[turn] for turn in turns for values in lists if turn < len(values)]
    return merged


def _totals(ranks: Sequence[Parts]) -> Parts:
    """Return the counts of all ranks together, and the time of the slowest."""
    counts = {kind: sum(parts[kind] for parts in ranks) for kind in ("correct", "counted")}
    return {**counts, "elapsed_s": max(parts["elapsed_s"] for parts in ranks)}


def _sum(terms: Sequence[float]) -> float:
    # fsum refuses infinities of both signs, whose sum is NaN.
    return math.fsum(terms) if all(map(math.isfinite, terms)) else float(sum(terms))
