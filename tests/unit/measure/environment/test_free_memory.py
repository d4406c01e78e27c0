from __future__ import annotations

from typing import Any

import psutil
import pytest

from deep500.measure.environment import free_memory
from deep500.measure.environment.free_memory import free_memory_bytes
from deep500.measure.environment.system import UnreadableError

MEBIBYTE = 2**20


def test_memory_is_that_of_the_machine_where_no_limit_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(system: Any) -> Any:
        raise UnreadableError("no such folder")

    monkeypatch.setattr(free_memory, "memory_limit_bytes", unreadable)
    assert MEBIBYTE < free_memory_bytes() <= psutil.virtual_memory().total


def test_limit_of_the_control_group_holds_and_what_is_taken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "memory_limit_bytes", lambda system: 1)
    assert free_memory_bytes() == 0
    taken = psutil.Process().memory_info().rss
    monkeypatch.setattr(free_memory, "memory_limit_bytes", lambda system: taken + 64 * MEBIBYTE)
    assert 0 <= free_memory_bytes() <= 80 * MEBIBYTE
