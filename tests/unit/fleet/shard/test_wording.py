from __future__ import annotations

from deep500.fleet.shard.wording import duration


def test_times_from_parts_of_a_second_to_hours() -> None:
    assert [duration(t) for t in (None, 0, 2.5e-5, 0.0999, 0.1, 119.0, 120.0, 7200.0)] == [
        "unknown", "0 s", "25 us", "99.9 ms", "0.1 s", "119.0 s", "2.0 min", "2.00 h",
    ]  # fmt: skip
