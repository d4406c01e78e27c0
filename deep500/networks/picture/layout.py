"""Coordinates of a directed graph that is drawn from top to bottom."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from deep500.networks.picture.ordering import Layers, ordered_layers

__all__ = ["Layout", "Point", "layered_layout"]

#: Distance of two vertices side by side, and of a bend from its neighbours.
_GAP, _BEND_GAP = 24.0, 12.0

#: Distance of two layers, without and with room for lines that run far to the side.
_LAYER_GAP, _WIDEST_LAYER_GAP = 28.0, 90.0

#: Passes that pull vertices below and above what they are connected with.
_PASSES = 16

#: How strongly a line is kept straight: between vertices, at one bend, between bends.
_STRAIGHTNESS = (1.0, 2.0, 8.0)

#: Share of a vertex' width over which the lines that arrive are spread.
_ARRIVAL_SHARE = 0.6

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Where everything is.

    Attributes:
        places: The left upper corner of each vertex.
        lines: Points of each edge, from its source's lower side, or where it branches off from a longer edge of the
            same source, to its target's upper side. Through a layer it runs straight down.
        width: Width of all.
        height: Height of all.
    """

    places: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def layered_layout(
    sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]], first: Collection[int] = ()
) -> Layout:
    """Place boxes in layers and lead lines between them.

    Args:
        sizes: Width and height of each box.
        edges: Pairs of numbers of boxes, the first smaller than the second.
        first: Boxes that stay in the first layer.
    """
    layers = ordered_layers(len(sizes), edges, first)
    widths = [width for width, _ in sizes] + [0.0] * (len(layers.rank) - len(sizes))
    centres = _centres(layers, widths)
    left = min((centres[v] - widths[v] / 2 for v in range(len(centres))), default=0.0)
    centres = [centre - left for centre in centres]
    tops, bottoms = _layer_bounds(layers, sizes, centres)
    places = [
        (centres[v] - width / 2, (tops[layers.rank[v]] + bottoms[layers.rank[v]] - height) / 2)
        for v, (width, height) in enumerate(sizes)
    ]
    lines = _lines(layers, edges, sizes, places, centres, (tops, bottoms), widths)
    width = max((centres[v] + widths[v] / 2 for v in range(len(centres))), default=0.0)
    return Layout(tuple(places), tuple(lines), width, bottoms[-1] if bottoms else 0.0)


def _lines(
    layers: Layers,
    edges: Sequence[tuple[int, int]],
    sizes: Sequence[tuple[float, float]],
    places: Sequence[Point],
    centres: Sequence[float],
    bounds: tuple[Sequence[float], Sequence[float]],
    widths: Sequence[float],
) -> list[tuple[Point, ...]]:
    """Return the points of each edge; see :attr:`Layout.lines`."""
    tops, bottoms = bounds
    arrivals = _arrival_points(layers, edges, centres, widths)
    lines: list[tuple[Point, ...]] = [()] * len(edges)
    drawn: set[int] = set()
    # The longest line of a source first: the others branch off from it.
    for number in sorted(range(len(edges)), key=lambda n: -layers.rank[edges[n][1]]):
        source, target = edges[number]
        points = [(arrivals[number], places[target][1]), (arrivals[number], tops[layers.rank[target]])]
        vertex = layers.arrivals[number]
        while vertex >= layers.count and vertex not in drawn:
            drawn.add(vertex)
            rank = layers.rank[vertex]
            points += [(centres[vertex], bottoms[rank]), (centres[vertex], tops[rank])]
            vertex = layers.above[vertex][0]
        points.append((centres[vertex], bottoms[layers.rank[vertex]]))
        if vertex == source:
            points.append((centres[source], places[source][1] + sizes[source][1]))
        lines[number] = tuple(reversed(points))
    return lines


def _centres(layers: Layers, widths: Sequence[float]) -> list[float]:
    """Return the middle of each vertex: near what it is connected with, in the order of its layer, without overlap."""
    centres = [0.0] * len(layers.rank)
    for row in layers.rows:
        offsets = _offsets(row, widths, layers.count)
        for vertex, offset in zip(row, offsets):
            centres[vertex] = offset - (offsets[-1] if offsets else 0.0) / 2
    for number in range(_PASSES):
        is_down, is_last = number % 2 == 0, number >= _PASSES - 4
        for row in layers.rows if is_down else reversed(layers.rows):
            wanted, weights = [], []
            for vertex in row:
                others = layers.above[vertex] if is_down else layers.below[vertex]
                others = [*layers.above[vertex], *layers.below[vertex]] if is_last else others
                pulls = [_STRAIGHTNESS[(vertex >= layers.count) + (other >= layers.count)] for other in others]
                total = sum(pulls)
                weights.append(total or 0.1)
                mean = sum(p * centres[other] for p, other in zip(pulls, others)) / total if total else centres[vertex]
                wanted.append(mean)
            for vertex, centre in zip(row, _without_overlap(wanted, weights, _offsets(row, widths, layers.count))):
                centres[vertex] = centre
    return centres


def _offsets(row: Sequence[int], widths: Sequence[float], count: int) -> list[float]:
    """Return the least distance of each vertex of a layer from the first."""
    offsets = [0.0] if row else []
    for left, right in itertools.pairwise(row):
        gap = _GAP if left < count and right < count else _BEND_GAP
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + gap)
    return offsets


def _without_overlap(wanted: Sequence[float], weights: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """Return the places nearest to those wanted (least squares) that keep the distances: isotonic regression.

    Source: R. E. Barlow et al., "Statistical Inference under Order Restrictions", 1972 (pool adjacent violators).
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, number of vertices
    for place, weight, offset in zip(wanted, weights, offsets):
        mean, total, size = place - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            before_mean, before, before_size = blocks.pop()
            mean = (before_mean * before + mean * total) / (before + total)
            total, size = before + total, before_size + size
        blocks.append((mean, total, size))
    means = [mean for mean, _, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets)]


def _layer_bounds(
    layers: Layers, sizes: Sequence[tuple[float, float]], centres: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return upper and lower side of each layer; layers between which lines run far are further apart."""
    tops: list[float] = []
    bottoms: list[float] = []
    for number, row in enumerate(layers.rows):
        top = 0.0
        if number:
            runs = [abs(centres[v] - centres[other]) for v in row for other in layers.above[v]]
            top = bottoms[-1] + min(_WIDEST_LAYER_GAP, _LAYER_GAP + 0.1 * max(runs, default=0.0))
        tops.append(top)
        bottoms.append(top + max((sizes[v][1] for v in row if v < layers.count), default=0.0))
    return tops, bottoms


def _arrival_points(
    layers: Layers, edges: Sequence[tuple[int, int]], centres: Sequence[float], widths: Sequence[float]
) -> list[float]:
    """Return where each edge meets its target: side by side, in the order in which they come."""
    coming: dict[int, list[int]] = {}
    for number, (_, target) in enumerate(edges):
        coming.setdefault(target, []).append(number)
    found = [0.0] * len(edges)
    for target, numbers in coming.items():
        numbers.sort(key=lambda number: (centres[layers.arrivals[number]], number))
        for index, number in enumerate(numbers):
            share = (index + 1) / (len(numbers) + 1) - 0.5
            found[number] = centres[target] + share * _ARRIVAL_SHARE * widths[target]
    return found
