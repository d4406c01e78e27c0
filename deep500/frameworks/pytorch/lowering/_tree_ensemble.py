"""Ensembles of decision trees: all rows walk down all trees at once, one step a level."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks.pytorch._arrays import to_tensor
from deep500.networks.operator_node import OperatorNode

__all__ = ["TreeEnsemble"]

#: What a node asks of a feature, by ``nodes_modes``.
_COMPARISONS: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    torch.le,
    torch.lt,
    torch.ge,
    torch.gt,
    torch.eq,
    torch.ne,
]
_MEMBER = len(_COMPARISONS)


class _Aggregate(enum.IntEnum):
    """How what the trees say is taken together."""

    AVERAGE = 0
    SUM = 1
    MIN = 2
    MAX = 3


class TreeEnsemble(torch.nn.Module):
    """Decision trees of one node.

    Inner nodes and leaves share one numbering, leaves after nodes; a leaf leads to itself, so that all rows may take as
    many steps as the deepest tree has levels.

    Source: ONNX ai.onnx.ml TreeEnsemble-5.
    """

    roots: torch.Tensor
    features: torch.Tensor
    splits: torch.Tensor
    modes: torch.Tensor
    tracks: torch.Tensor
    on_true: torch.Tensor
    on_false: torch.Tensor
    members: torch.Tensor
    weights: torch.Tensor
    targets: torch.Tensor

    def __init__(self, node: OperatorNode) -> None:
        """Read the attributes of a node.

        Raises:
            InvalidNetworkError: The trees are not trees.
        """
        super().__init__()
        given = node.attributes
        count, leaves = len(given["nodes_featureids"]), len(given["leaf_targetids"])
        self.target_count = given["n_targets"]
        self.aggregate = _Aggregate(given.get("aggregate_function", 1))
        self.post_transform = given.get("post_transform", 0)
        still = list(range(count, count + leaves))
        branches = {}
        for side in ("true", "false"):
            to_leaf = zip(given[f"nodes_{side}nodeids"], given[f"nodes_{side}leafs"], strict=True)
            branches[side] = [target + count if is_leaf else target for target, is_leaf in to_leaf] + still
        self.depth = _depth(given["tree_roots"], branches["true"], branches["false"], count, node.label)
        tracks = given.get("nodes_missing_value_tracks_true") or [0] * count
        modes = [int(mode) for mode in np.asarray(given["nodes_modes"]).reshape(-1)]
        integers = {
            "roots": given["tree_roots"],
            "features": [*given["nodes_featureids"], *[0] * leaves],
            "modes": [*modes, *[0] * leaves],
            "tracks": [*tracks, *[0] * leaves],
            "on_true": branches["true"],
            "on_false": branches["false"],
            "targets": [*[0] * count, *given["leaf_targetids"]],
        }
        for name, numbers in integers.items():
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.int64), persistent=False)
        for name, numbers, before, after in (
            ("splits", given["nodes_splits"], 0, leaves),
            ("weights", given["leaf_weights"], count, 0),
        ):
            padded = np.pad(np.asarray(numbers).reshape(-1), (before, after))
            self.register_buffer(name, to_tensor(padded), persistent=False)
        members = _members(modes, given.get("membership_values"), leaves)
        self.register_buffer("members", to_tensor(members), persistent=False)
        self.used_modes = sorted(set(modes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``[N, n_targets]`` for rows ``[N, F]``."""
        at = self.roots.expand(x.size(0), -1)
        for _ in range(self.depth):
            value = torch.gather(x, 1, self.features[at])
            holds = self._holds(value, at) | (torch.isnan(value) & (self.tracks[at] != 0))
            at = torch.where(holds, self.on_true[at], self.on_false[at])
        return self._transformed(self._aggregated(self.weights[at].type_as(x), self.targets[at], x))

    def _holds(self, value: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        mode, split = self.modes[at], self.splits[at]
        holds = torch.zeros_like(value, dtype=torch.bool)
        for number in self.used_modes:
            if number == _MEMBER:
                answer = (self.members[at] == value.unsqueeze(-1)).any(-1)
            else:
                answer = _COMPARISONS[number](value, split)
            holds = torch.where(mode == number, answer, holds)
        return holds

    def _aggregated(self, weights: torch.Tensor, targets: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        shape = (x.size(0), self.target_count)
        if self.aggregate in (_Aggregate.SUM, _Aggregate.AVERAGE):
            total = x.new_zeros(shape).scatter_add(1, targets, weights)
            return total / self.roots.numel() if self.aggregate is _Aggregate.AVERAGE else total
        limits = torch.finfo(x.dtype)
        if self.aggregate is _Aggregate.MIN:
            return x.new_full(shape, limits.max).scatter_reduce(1, targets, weights, "amin")
        return x.new_full(shape, limits.min).scatter_reduce(1, targets, weights, "amax")

    def _transformed(self, scores: torch.Tensor) -> torch.Tensor:
        """Apply ``post_transform``: nothing, softmax, logistic function, softmax of all but zeros, or probit."""
        if self.post_transform == 1:
            return torch.softmax(scores, 1)
        if self.post_transform == 2:
            return torch.sigmoid(scores)
        if self.post_transform == 3:
            is_zero = scores == 0
            some = torch.softmax(scores.masked_fill(is_zero, float("-inf")), 1)
            return torch.where(is_zero, 0.0, some)
        if self.post_transform == 4:
            probit: torch.Tensor = torch.special.ndtri(scores)
            return probit
        return scores


def _depth(roots: Sequence[int], on_true: list[int], on_false: list[int], count: int, label: str) -> int:
    """Return the number of levels of the deepest tree; inner nodes are numbered below ``count``."""
    depth, level = 0, {root for root in roots if root < count}
    while level:
        depth += 1
        if depth > count:
            raise InvalidNetworkError(
                f"{label} has a branch that leads back to where it came from; accepted are trees."
            )
        level = {after for at in level for after in (on_true[at], on_false[at]) if after < count}
    return depth


def _members(modes: list[int], values: Any, leaves: int) -> Any:
    """Return the sets of the nodes that ask for membership, ``[nodes and leaves, size]``, filled up with NaN.

    The sets are listed in the order of their nodes, each ended by a NaN.
    """
    if values is None or _MEMBER not in modes:
        return np.full((len(modes) + leaves, 1), np.nan, np.float32)
    listed = np.asarray(values).reshape(-1)
    sets = iter(np.split(listed, np.flatnonzero(np.isnan(listed)) + 1))
    rows = [next(sets, listed[:0]) if mode == _MEMBER else listed[:0] for mode in modes]
    table = np.full((len(modes) + leaves, max(1, *(row.size for row in rows))), np.nan, listed.dtype)
    for row, members in zip(table, rows):
        row[: members.size] = members
    return table
