from __future__ import annotations

import itertools

import pytest

from deep500.networks.picture.layout import Layout, layered_layout

EDGES = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 5), (0, 5), (2, 5)]
SIZES = [(40.0, 20.0), (100.0, 20.0), (60.0, 60.0), (80.0, 20.0), (30.0, 20.0), (50.0, 20.0)]


def overlaps(layout: Layout) -> list[tuple[int, int]]:
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(layout.places, SIZES, strict=True)]
    return [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(boxes), 2)
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


def test_boxes_do_not_overlap_and_lie_below_what_they_need() -> None:
    layout = layered_layout(SIZES, EDGES)

    assert overlaps(layout) == []
    assert all(layout.places[s][1] + SIZES[s][1] < layout.places[t][1] for s, t in EDGES)
    assert min(x for x, _ in layout.places) >= 0
    assert max(x + w for (x, _), (w, _) in zip(layout.places, SIZES, strict=True)) <= layout.width + 1e-9
    assert max(y + h for (_, y), (_, h) in zip(layout.places, SIZES, strict=True)) <= layout.height + 1e-9


def test_lines_end_at_their_boxes_and_run_down() -> None:
    layout = layered_layout(SIZES, EDGES)

    for (_, target), line in zip(EDGES, layout.lines, strict=True):
        x, y = line[-1]
        assert y == layout.places[target][1]
        assert layout.places[target][0] < x < layout.places[target][0] + SIZES[target][0]
        assert all(before[1] <= after[1] for before, after in itertools.pairwise(line))
    starts = [line[0] for (source, _), line in zip(EDGES, layout.lines, strict=True) if source == 4]
    assert starts == [(layout.places[4][0] + 15.0, layout.places[4][1] + 20.0)]


def test_chain_is_straight() -> None:
    layout = layered_layout([(30.0, 10.0), (90.0, 10.0), (50.0, 10.0)], [(0, 1), (1, 2)])
    centres = [x + w / 2 for (x, _), w in zip(layout.places, (30.0, 90.0, 50.0), strict=True)]

    assert centres == pytest.approx([45.0] * 3)


def test_nothing() -> None:
    assert layered_layout([], []) == Layout((), (), 0.0, 0.0)
