from __future__ import annotations

from deep500.fleet.ci.wording import counted


def test_one_is_singular() -> None:
    assert [counted(n, "job") for n in (0, 1, 2, 1832)] == ["0 jobs", "1 job", "2 jobs", "1,832 jobs"]
