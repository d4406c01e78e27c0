from __future__ import annotations

import errno
import os
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.training._shared_memory import SharedMemory, aligned


def test_both_ends_see_the_same_bytes() -> None:
    ours = SharedMemory.create(100)
    theirs = SharedMemory(os.dup(ours.descriptor), len(ours.memory))
    private = SharedMemory(os.dup(ours.descriptor), len(ours.memory), copy_on_write=True)
    np.frombuffer(theirs.memory, np.uint8)[3] = 7
    private.memory[4] = 9
    assert ours.memory[3:5] == b"\x07\x00"
    for end in (ours, theirs, private):
        end.close_descriptor()
        end.close_descriptor()
    assert ours.memory[3] == theirs.memory[3] == 7


def test_lack_of_memory_is_told_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(DatasetError, match=r"cannot be had \(No space left on device\)\. Use a smaller prefetch"):
        SharedMemory.create(1 << 20)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("missing", ["memfd_create", "posix_fallocate"])
def test_systems_that_lack_something(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, missing)
    shared = SharedMemory.create(5000)
    shared.memory[4999] = 1
    shared.close_descriptor()


def test_alignment() -> None:
    assert [aligned(size) for size in (0, 1, 64, 65)] == [0, 64, 64, 128]
