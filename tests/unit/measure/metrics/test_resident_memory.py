from __future__ import annotations

import gc
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from deep500.measure.metrics import _resident_memory
from deep500.measure.metrics._resident_memory import HighWaterMark, SampledPeak, open_resident_peak

MEBIBYTE = 2**20


def touch(size_bytes: int) -> None:
    block = np.ones(size_bytes // 8)
    time.sleep(0.1)  # for the thread that looks
    del block


def fake_process(folder: Path, resident_kib: int, mark_kib: int) -> Path:
    (folder / "clear_refs").write_text("")
    (folder / "status").write_text(f"Name:\tpython\nVmHWM:\t{mark_kib} kB\nVmRSS:\t  {resident_kib} kB\n")
    return folder


def test_mark_is_what_the_kernel_says(tmp_path: Path) -> None:
    mark = HighWaterMark(fake_process(tmp_path, 3000, 4000))

    assert mark.start() == 3000 * 1024
    assert (tmp_path / "clear_refs").read_text() == "5"
    assert mark.stop() == 4000 * 1024
    assert mark.works()


def test_mark_that_cannot_be_reset_does_not_work(tmp_path: Path) -> None:
    # A sandbox that takes the 5 and does nothing: the mark stands far above what is resident.
    assert not HighWaterMark(fake_process(tmp_path, 1000, 900_000)).works()
    (tmp_path / "status").write_text("Name:\tpython\n")
    assert not HighWaterMark(tmp_path).works()
    (tmp_path / "status").write_text("VmRSS: many kB\nVmHWM: 1 kB\n")
    assert not HighWaterMark(tmp_path).works()
    assert not HighWaterMark(tmp_path / "missing").works()


@pytest.mark.skipif(not HighWaterMark().works(), reason="the kernel's mark cannot be reset here")
def test_mark_finds_a_peak_that_is_over_and_forgets_it_with_the_next_start() -> None:
    mark = HighWaterMark()
    before = mark.start()
    touch(200 * MEBIBYTE)

    assert 190 * MEBIBYTE < mark.stop() - before < 260 * MEBIBYTE
    assert mark.stop() - mark.start() > 150 * MEBIBYTE


def test_thread_keeps_the_largest_it_saw() -> None:
    sizes = iter([10, 20, 90, 30])
    seen = threading.Event()

    def resident() -> int:
        size = next(sizes, None)
        if size is None:
            seen.set()
        return 30 if size is None else size

    peak = SampledPeak(resident)
    assert peak.start() == 10
    assert seen.wait(10)
    assert peak.stop() == 90


def test_thread_sees_a_real_peak() -> None:
    peak = SampledPeak()
    before = peak.start()
    touch(200 * MEBIBYTE)

    assert 150 * MEBIBYTE < peak.stop() - before < 300 * MEBIBYTE


def test_thread_ends_with_stop_with_the_next_start_and_with_its_object() -> None:
    def watchers() -> int:
        return sum(getattr(thread, "_target", None) is _resident_memory._look for thread in threading.enumerate())

    peak = SampledPeak(lambda: 1)
    peak.start()
    peak.start()
    assert watchers() == 1
    peak.stop()
    assert watchers() == 0
    with pytest.raises(RuntimeError, match="no start"):
        peak.stop()

    peak.start()
    [thread] = [t for t in threading.enumerate() if getattr(t, "_target", None) is _resident_memory._look]
    del peak
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_best_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HighWaterMark, "works", lambda self: True)
    assert open_resident_peak().method == "VmHWM"
    monkeypatch.setattr(HighWaterMark, "works", lambda self: False)
    assert open_resident_peak().method == "sampled every 1 ms"


@pytest.mark.skipif(sys.platform != "linux", reason="the process is seen in /proc on Linux")
def test_resident_memory_is_that_of_this_process() -> None:
    status = Path("/proc/self/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0]) * 1024

    assert abs(_resident_memory._resident_bytes()() - resident) < 64 * MEBIBYTE
