from __future__ import annotations

import dataclasses
import json

import pytest

from deep500.core.errors import InvalidInputError
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import LaunchSamples, MetricSamples
from deep500.networks.profiling.report import SORTS, Memory, NetworkProfile, NodeProfile

PEAK = {"flops_per_s": 1e9, "bytes_per_s": 1e8, "dtype": "float32", "threads": 1, "how": "given", "device": "cpu"}


def samples(milliseconds: float) -> MetricSamples:
    row = tuple(milliseconds * 1e-3 * (1 + 0.001 * number) for number in range(-5, 6))
    return MetricSamples("WallclockTime", "s", MetricKind.COST, Direction.LOWER, (LaunchSamples(0, row),))


def make_profile() -> NetworkProfile:
    nodes = (
        NodeProfile("a", "Conv", 0, "float32[2]", "float32", 500_000, 10_000, samples(1)),
        NodeProfile("b\x07", "mine::Mine", 1, "int64[2]", "int64", None, 40_000, samples(3), note="x"),
        NodeProfile("c", "SequenceAt", 2, "?", None, 0, 0, note="not timed: it is a list"),
    )
    return NetworkProfile(
        network="net",
        framework="numpy",
        device="cpu",
        mode="eval",
        loss=None,
        inputs={"x": "float32[2]"},
        whole=samples(3.2),
        call=samples(0.01),
        nodes=nodes,
        memory=Memory(2**20, 0, "h"),
        peaks=(PEAK,),
    )


def test_shares_of_time_and_of_the_peak() -> None:
    found = make_profile()

    assert found.sum_seconds == pytest.approx(4e-3)
    assert [found.share(node) for node in found.nodes] == pytest.approx([0.25, 0.75, 0.0])
    assert found.peak_shares(found.nodes[0]) == pytest.approx((0.5, 0.1))
    assert found.peak_shares(found.nodes[1]) == (None, pytest.approx(0.4 / 3))
    assert found.peak_shares(found.nodes[2]) == (None, None)
    assert dataclasses.replace(found, device="gpu:0").peak_shares(found.nodes[0]) == (None, None)
    assert found.flops is None


def test_order_of_rows() -> None:
    found = make_profile()
    orders = {sort: "".join(node.node[0] for node in found.sorted_nodes(sort)) for sort in SORTS}

    assert orders == {"time": "bac", "flops": "abc", "bytes": "bac", "order": "abc"}
    for sort in ("size", None, 3):
        with pytest.raises(InvalidInputError, match="sort was given as"):
            found.sorted_nodes(sort)  # type: ignore[arg-type]


def test_table() -> None:
    lines = make_profile().table().splitlines()
    row = next(line for line in lines if line.startswith("a "))

    assert lines[0] == "Network 'net' under numpy on cpu: inference, evaluation mode"
    cells = "a Conv float32[2] 1 ms 0.996 .. 1.004 25.0% 500 kflop 500 Mflop/s 50.0% 10 kB 10 MB/s 10.0%"
    assert " ".join(row.split()) == cells
    assert any(line.startswith("b\\x07 ") and " ? " in line for line in lines)
    assert any("not timed" in line for line in lines)
    assert any("nodes may be fused, and be faster than their sum" in line for line in lines)
    assert any("interval within it; others may differ" in line for line in lines)
    assert "and 2 more, 25.0% of the nodes' time" in make_profile().table(top=1)


def test_written_and_read() -> None:
    found = make_profile()
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))

    assert NetworkProfile.from_dict(content) == found
    assert content["derived"]["whole"]["basis"] == "in process"
    assert content["nodes"][0]["derived"]["share"] == pytest.approx(0.25)
    assert content["nodes"][2]["derived"]["time"] is None


def test_joined_processes_have_intervals_over_them() -> None:
    found = make_profile()
    joined = NetworkProfile.joined([found] * 6)
    summary = joined.nodes[0].summary

    assert summary is not None
    assert (summary.launches, summary.basis.value) == (6, "launches")
    assert joined.nodes[2].time is None
    assert NetworkProfile.joined([found]) == found
    with pytest.raises(InvalidInputError, match="no profiles"):
        NetworkProfile.joined([])
    with pytest.raises(InvalidInputError, match=r"Profile 2 .* its framework differs"):
        NetworkProfile.joined([found, dataclasses.replace(found, framework="other")])
    with pytest.raises(InvalidInputError, match="its nodes differ"):
        NetworkProfile.joined([found, dataclasses.replace(found, nodes=found.nodes[:1])])


def test_heat_is_relative_to_the_hottest() -> None:
    assert make_profile().heat() == {"a": ("1 ms, 25.0%", pytest.approx(1 / 3)), "b\x07": ("3 ms, 75.0%", 1.0)}
