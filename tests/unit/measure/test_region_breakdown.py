from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import UnknownNameError
from deep500.measure import region_breakdown
from deep500.measure.region_breakdown import KEPT_SAMPLES, RegionBreakdown, RegionCost, RegionNode
from deep500.measure.regions import collect_regions, region
from tests.unit.measure.regions_support import FakeClock, fake_clock

__all__ = ["fake_clock"]  # a fixture, used by its name


def node_of(durations: list[int]) -> RegionNode:
    node = RegionNode()
    for duration in durations:
        node.record(duration)
    node.fold()
    return node


def work(fake: FakeClock) -> RegionBreakdown:
    """Return a breakdown of 10 s: ``a`` of 1 and 7 s, with ``b`` of 0, 2 and 4 s in its second call; 2 s of nothing."""
    with collect_regions() as breakdown:
        with region("a"):
            fake.go_on(1)
        with region("a"):
            for seconds in (0, 2, 4):
                with region("b"):
                    fake.go_on(seconds)
            fake.go_on(1)
        fake.go_on(2)
    return breakdown


def test_rows(fake_clock: FakeClock) -> None:
    a, b = work(fake_clock).rows()

    assert (a.path, a.calls, a.total_s, a.self_s, a.share_of_parent) == (("a",), 2, 8, 2, 0.8)
    assert (a.min_s, a.median_s, a.max_s, a.samples_s) == (1, 4, 7, (1, 7))
    assert (b.path, b.calls, b.total_s, b.self_s, b.share_of_parent) == (("a", "b"), 3, 6, 6, 0.75)
    assert (b.min_s, b.median_s, b.max_s, b.samples_s) == (0, 2, 4, (0, 2, 4))


def test_cost_of_the_timers_themselves(fake_clock: FakeClock) -> None:
    breakdown = work(fake_clock)
    a, b = breakdown.rows()

    # An empty region counts 0.25 s as its own; the region around it counts all of the 0.5 s that it costs.
    assert b.overhead_s == 3 * 0.25
    assert a.overhead_s == 2 * 0.25 + 3 * 0.5
    assert (breakdown.overhead_s_per_call, breakdown.overhead_s) == (0.5, 2.5)


def test_cost_of_regions_of_all_depths_counts(fake_clock: FakeClock) -> None:
    with collect_regions() as chain, region("a"), region("b"), region("c"):
        pass
    with collect_regions() as branches, region("a"):
        for name in ("b", "c"):
            with region(name):
                pass

    assert [row.overhead_s for row in chain.rows()] == [1.25, 0.75, 0.25]
    assert [row.overhead_s for row in branches.rows()] == [1.25, 0.25, 0.25]


def test_json(fake_clock: FakeClock) -> None:
    content = work(fake_clock).to_dict()

    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert {key: content[key] for key in content if key != "rows"} == {
        "elapsed_s": 10,
        "overhead_s_per_call": 0.5,
        "overhead_s": 2.5,
    }
    assert content["rows"][1] == {
        "path": ["a", "b"],
        "calls": 3,
        "total_s": 6,
        "self_s": 6,
        "share_of_parent": 0.75,
        "min_s": 0,
        "median_s": 2,
        "max_s": 4,
        "overhead_s": 0.75,
        "samples_s": [0, 2, 4],
    }


def test_table(fake_clock: FakeClock) -> None:
    assert str(work(fake_clock)).splitlines() == [
        "region  calls  total  self   share  min  median  max  timers",
        "a           2    8 s   2 s  80.0 %  1 s     4 s  7 s     2 s",
        "  b         3    6 s   6 s  75.0 %  0 s     2 s  4 s  750 ms",
        "elapsed 10 s; the timers took 2.5 s of it (5 calls of 500 ms)",
    ]


def test_table_of_nothing() -> None:
    with collect_regions() as breakdown:
        pass

    assert str(breakdown) == "No region was timed."
    assert breakdown.rows() == []
    assert breakdown.overhead_s == 0


def test_table_shows_no_control_characters(fake_clock: FakeClock) -> None:
    with collect_regions() as breakdown, region("a\x1b[2J\nb"):
        pass

    assert "a\\x1b[2J\\nb" in str(breakdown)
    assert breakdown.rows()[0].path == ("a\x1b[2J\nb",)


def test_breakdown_is_read_while_it_is_collected(fake_clock: FakeClock) -> None:
    with collect_regions() as breakdown, region("a"):
        with region("b"):
            fake_clock.go_on(1)
        fake_clock.go_on(1)
        a, b = breakdown.rows()
        text = str(breakdown)
        elapsed_s = breakdown.elapsed_s

    assert (a.calls, a.total_s, a.self_s, a.min_s, a.median_s, a.max_s) == (0, 0, 0, None, None, None)
    assert (b.calls, b.total_s, b.share_of_parent, elapsed_s) == (1, 1, None, 2)
    assert text.splitlines()[1].split() == ["a", "0", "0", "s", "0", "s", "0.0", "%", "-", "-", "-", "500", "ms"]
    assert breakdown["a"].calls == 1


def test_row_by_its_path(fake_clock: FakeClock) -> None:
    breakdown = work(fake_clock)

    assert breakdown["a"] == breakdown.rows()[0]
    assert breakdown["a", "b"] == breakdown.rows()[1]


@pytest.mark.parametrize("path", ["b", ("a", "c"), (), ("b", "a")])
def test_path_that_is_not_there(fake_clock: FakeClock, path: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"No region '.*' was timed.*Timed were: a, a > b\."):
        work(fake_clock)[path]


def test_path_in_a_breakdown_without_regions() -> None:
    with pytest.raises(UnknownNameError, match=r"No region 'a' was timed\. Timed were: none\."):
        RegionBreakdown(lambda: RegionCost(0, 0))["a"]


def test_share_of_no_time_is_none(fake_clock: FakeClock) -> None:
    with collect_regions() as breakdown, region("a"):
        pass

    assert breakdown["a"].share_of_parent is None
    assert " - " in str(breakdown).splitlines()[1]


@pytest.mark.parametrize("calls", [KEPT_SAMPLES - 1, KEPT_SAMPLES, KEPT_SAMPLES + 1, 3 * KEPT_SAMPLES])
def test_long_runs_keep_their_first_samples_and_have_no_median_of_the_rest(calls: int) -> None:
    breakdown = RegionBreakdown(lambda: RegionCost(0, 0))
    node = breakdown.root.child("a")
    for number in range(calls):
        node.record((number + 1) * 10**9)
    row = breakdown["a"]

    kept = min(calls, KEPT_SAMPLES)
    assert (row.calls, row.total_s, row.min_s, row.max_s) == (calls, calls * (calls + 1) // 2, 1, calls)
    assert row.samples_s == tuple(float(number + 1) for number in range(kept))
    assert row.median_s == ((calls + 1) / 2 if calls <= KEPT_SAMPLES else None)


@given(st.lists(st.integers(0, 10**15), max_size=60), st.integers(1, 5))
def test_summing_up_in_parts_changes_nothing(durations: list[int], waiting: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_breakdown, "_WAITING", waiting)
        parts = node_of(durations)
    whole = node_of(durations)

    for node in (parts, whole):
        assert (node.calls, node.total_ns, list(node.samples_ns)) == (len(durations), sum(durations), durations)
        assert (node.min_ns, node.max_ns) == (min(durations, default=None), max(durations, default=None))


def test_region_that_ends_while_its_durations_are_summed_up_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the garbage collection closes a generator in the middle."""
    node = RegionNode()
    monkeypatch.setattr(region_breakdown, "_WAITING", 2)
    add = RegionNode._add

    def interrupted(self: RegionNode, durations: list[int]) -> None:
        monkeypatch.setattr(RegionNode, "_add", add)
        for duration in (4, 8):
            self.record(duration)
        add(self, durations)

    monkeypatch.setattr(RegionNode, "_add", interrupted)
    node.record(1)
    node.record(2)
    node.fold()

    assert (node.calls, node.total_ns, list(node.samples_ns)) == (4, 15, [1, 2, 4, 8])


class Growing(list[int]):
    """A list to which another thread appends while it is read."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if len(self) < 3:
            self.append(4)
        return found


def test_duration_that_a_thread_adds_meanwhile_is_not_lost() -> None:
    node = RegionNode()
    node._waiting = Growing([1, 2])
    node.fold()
    assert list(node.samples_ns) == [1, 2]

    node.fold()
    assert list(node.samples_ns) == [1, 2, 4]


def test_two_threads_that_enter_a_new_region_share_it() -> None:
    node = RegionNode()

    assert node.child("a") is node.child("a") is not node.child("b")


TREES = st.recursive(
    st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.just(())),
    lambda inner: st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.lists(inner, max_size=4)),
    max_leaves=12,
)


@given(st.lists(TREES, max_size=4))
def test_own_times_add_up_to_the_whole(trees: list[Any]) -> None:
    fake = FakeClock()

    def run(tree: Any) -> None:
        name, seconds, inner = tree
        with region(name):
            fake.go_on(seconds)
            for part in inner:
                run(part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deep500.measure.clock.now_ns", fake)
        patch.setattr("deep500.measure.regions.calibrate_regions", lambda: RegionCost(0, 0))
        with collect_regions() as breakdown:
            for tree in trees:
                run(tree)
        rows = breakdown.rows()

    assert sum(row.self_s for row in rows) == breakdown.elapsed_s
    assert sum(row.total_s for row in rows if len(row.path) == 1) == breakdown.elapsed_s
    assert sum(row.calls for row in rows) == sum(map(count, trees))
    for row in rows:
        assert row.total_s == sum(row.samples_s)
        assert len({other.path for other in rows}) == len(rows)


def count(tree: Any) -> int:
    return 1 + sum(map(count, tree[2]))
