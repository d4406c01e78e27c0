"""Layers of a directed graph: which vertex lies in which, and beside which others."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

__all__ = ["Layers", "ordered_layers"]

#: Passes over all layers, down and up in turn, that look for fewer crossings.
_SWEEPS = 12


@dataclass
class Layers:
    """Vertices in layers, with a bend wherever an edge passes through a layer.

    Vertices from ``count`` on are bends. What leaves a vertex for far layers shares its bends, so that an input that
    all layers read is one line with branches.

    Attributes:
        count: Number of vertices that are no bends.
        rank: The layer of each vertex.
        rows: The vertices of each layer, from left to right.
        above: For each vertex those it is connected with in the layer before.
        below: For each vertex those it is connected with in the layer after.
        arrivals: For each edge the vertex in the layer before its target that it arrives from.
    """

    count: int
    rank: list[int]
    rows: list[list[int]] = field(default_factory=list)
    above: list[list[int]] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)


def ordered_layers(count: int, edges: Sequence[tuple[int, int]], first: Collection[int] = ()) -> Layers:
    """Place vertices in layers so that every edge points down and few edges cross.

    A vertex lies in the layer after the last of those before it (the longest path); what nothing is before lies right
    above what needs it first. Then each layer is sorted by the mean position of what its vertices are connected with,
    in sweeps down and up; the order with the fewest crossings is kept.

    Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System Structures", IEEE
    Transactions on Systems, Man, and Cybernetics 11(2), 1981.

    Args:
        count: Number of vertices.
        edges: Pairs of vertices, the first with the smaller number.
        first: Vertices that stay in the first layer.
    """
    layers = Layers(count, _ranks(count, edges, set(first)))
    _add_bends(layers, edges)
    _sort(layers)
    return layers


def _ranks(count: int, edges: Sequence[tuple[int, int]], first: set[int]) -> list[int]:
    rank = [0] * count
    has_source = [False] * count
    nearest: list[int | None] = [None] * count
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        rank[target] = max(rank[target], rank[source] + 1)
        has_source[target] = True
    for source, target in edges:
        known = nearest[source]
        nearest[source] = rank[target] if known is None else min(known, rank[target])
    for vertex in range(count):
        reader = nearest[vertex]
        if not has_source[vertex] and vertex not in first and reader is not None:
            rank[vertex] = reader - 1
    return rank


def _add_bends(layers: Layers, edges: Sequence[tuple[int, int]]) -> None:
    layers.above = [[] for _ in range(layers.count)]
    layers.below = [[] for _ in range(layers.count)]
    chains: dict[int, list[int]] = {}
    for source, target in edges:
        chain = chains.setdefault(source, [source])
        steps = layers.rank[target] - layers.rank[source]
        while len(chain) < steps:
            bend = len(layers.rank)
            layers.rank.append(layers.rank[source] + len(chain))
            layers.above.append([chain[-1]])
            layers.below.append([])
            layers.below[chain[-1]].append(bend)
            chain.append(bend)
        arrival = chain[steps - 1]
        layers.arrivals.append(arrival)
        if target not in layers.below[arrival]:
            layers.below[arrival].append(target)
            layers.above[target].append(arrival)
    layers.rows = [[] for _ in range(max(layers.rank, default=-1) + 1)]
    for vertex in _by_reach(layers):
        layers.rows[layers.rank[vertex]].append(vertex)


def _by_reach(layers: Layers) -> list[int]:
    """Return all vertices, depth first from the sources, so that what belongs together begins side by side."""
    seen = [False] * len(layers.rank)
    found = []
    for start in [v for v in range(len(layers.rank)) if not layers.above[v]]:
        pending = [start]
        while pending:
            vertex = pending.pop()
            if seen[vertex]:
                continue
            seen[vertex] = True
            found.append(vertex)
            pending.extend(reversed(layers.below[vertex]))
    return found


def _sort(layers: Layers) -> None:
    best, fewest = [list(row) for row in layers.rows], _crossings(layers)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        is_down = sweep % 2 == 0
        neighbours = layers.above if is_down else layers.below
        place = {vertex: index for row in layers.rows for index, vertex in enumerate(row)}
        for row in layers.rows if is_down else reversed(layers.rows):
            mean = {v: sum(place[n] for n in neighbours[v]) / len(neighbours[v]) for v in row if neighbours[v]}
            row.sort(key=lambda vertex: mean.get(vertex, place[vertex]))
            place.update((vertex, index) for index, vertex in enumerate(row))
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(row) for row in layers.rows], crossings
    layers.rows = best


def _crossings(layers: Layers) -> int:
    """Return how many pairs of lines between neighbouring layers cross."""
    crossings = 0
    for row, after in itertools.pairwise(layers.rows):
        place = {vertex: index for index, vertex in enumerate(after)}
        ends: list[int] = []
        for vertex in row:
            new = sorted(place[target] for target in layers.below[vertex])
            crossings += sum(len(ends) - bisect.bisect_right(ends, end) for end in new)
            for end in new:
                bisect.insort(ends, end)
    return crossings
