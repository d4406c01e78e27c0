from __future__ import annotations

import itertools

from deep500.networks.picture.ordering import Layers, ordered_layers


def check(layers: Layers) -> None:
    """All lines lead from a layer to the next, and every vertex is in one place."""
    assert sorted(v for row in layers.rows for v in row) == list(range(len(layers.rank)))
    for vertex, others in enumerate(layers.below):
        assert all(layers.rank[other] == layers.rank[vertex] + 1 for other in others)


def crossings(layers: Layers) -> int:
    count = 0
    for row, after in itertools.pairwise(layers.rows):
        lines = [(row.index(v), after.index(other)) for v in row for other in layers.below[v]]
        count += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(lines, 2))
    return count


def test_longest_path_and_shared_bends() -> None:
    layers = ordered_layers(5, [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (4, 3)])

    check(layers)
    assert layers.rank[:5] == [0, 1, 2, 3, 2]  # what nothing is before lies right above what needs it
    assert len(layers.rank) == 5 + 2  # both far edges of vertex 0 share their bends
    assert ordered_layers(5, [(0, 1), (1, 2), (2, 3), (4, 3)], first=[4]).rank[4] == 0


def test_crossings_that_can_be_avoided_are() -> None:
    twisted = ordered_layers(6, [(0, 5), (1, 4), (2, 3)])
    layers = ordered_layers(8, [(0, 3), (0, 4), (1, 2), (1, 3), (2, 7), (3, 6), (4, 5)])

    for found in (twisted, layers):
        check(found)
        assert crossings(found) == 0


def test_nothing_and_single_vertices() -> None:
    assert ordered_layers(0, []).rows == []
    assert ordered_layers(2, []).rows == [[0, 1]]
