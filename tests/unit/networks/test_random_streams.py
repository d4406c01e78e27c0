from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError
from deep500.networks.random_streams import RandomStreams, node_stream, streams_in_use


def test_stream_of_a_seed_is_numpys() -> None:
    drawn = RandomStreams().stream("y", 2**32 + 5).uniform(size=3)

    assert np.array_equal(drawn, np.random.RandomState(5).uniform(size=3))


def test_streams_go_on_from_a_snapshot_made_before_and_after() -> None:
    streams = RandomStreams()
    streams.stream("a", 1).normal()
    streams.stream("b", None).uniform(size=700)
    snapshot = streams.state()
    expected = [streams.stream(name, None).normal(size=5) for name in ("a", "b")]
    fresh = RandomStreams()
    fresh.restore(snapshot)  # before a node is translated
    assert np.array_equal(fresh.state()["streams"]["a"]["key"], snapshot["streams"]["a"]["key"])
    assert np.array_equal([fresh.stream("a", 1).normal(size=5), fresh.stream("b", None).normal(size=5)], expected)
    streams.restore(snapshot)  # and after
    assert np.array_equal([streams.stream(name, None).normal(size=5) for name in ("a", "b")], expected)


def test_seed_of_nodes_without_one() -> None:
    drawn = []
    for seed in (3, 3, 4):
        streams = RandomStreams()
        streams.seed(seed)
        drawn.append([float(streams.stream(name, None).uniform()) for name in ("a", "b")])

    assert drawn[0] == drawn[1]
    assert len({*drawn[0], *drawn[2]}) == 4


def test_nodes_draw_from_the_streams_in_use() -> None:
    streams, other = RandomStreams(), RandomStreams()
    with streams.in_use():
        assert streams_in_use() is streams
        with other.in_use():
            assert streams_in_use() is other
        stream = node_stream(("", "y"), 1)
    assert node_stream(("y",), 1) is not stream
    assert streams.stream("y", 1) is stream


@pytest.mark.parametrize(
    "state",
    [{}, {"streams": []}, {"streams": {"a": {}}}, {"streams": {"a": {"key": np.zeros(3), "position": 0}}}],
    ids=str,
)
def test_what_is_no_snapshot_is_refused(state: Any) -> None:
    streams = RandomStreams()
    first = streams.stream("a", 1).get_state()[1]
    with pytest.raises(CheckpointError):
        streams.restore(state)
    assert np.array_equal(streams.stream("a", 1).get_state()[1], first)
