from __future__ import annotations

import gc
import importlib.machinery
import os
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from deep500.measure.metrics import _energy_counters
from deep500.measure.metrics._energy_counters import (
    RaplCounters,
    UnavailableError,
    ZeusCounters,
    open_energy_counters,
)

RANGE_UJ = 262_143_328_850


def set_counter(folder: Path, domain: str, value_uj: int | str, name: str = "", range_uj: int = RANGE_UJ) -> None:
    place = folder / domain
    place.mkdir(parents=True, exist_ok=True)
    (place / "energy_uj").write_text(f"{value_uj}\n")
    if name:
        (place / "name").write_text(f"{name}\n")
        (place / "max_energy_range_uj").write_text(f"{range_uj}\n")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two processors with memory, and all that would be counted twice: cores, the platform, the same through MMIO."""
    set_counter(tmp_path, "intel-rapl:0", 1_000_000, "package-0")
    set_counter(tmp_path, "intel-rapl:0:0", 500_000, "core")
    set_counter(tmp_path, "intel-rapl:0:1", 300_000, "dram")
    set_counter(tmp_path, "intel-rapl:1", 2_000_000, "package-1")
    set_counter(tmp_path, "intel-rapl:1:0", 0, "dram")  # a counter that never moves
    set_counter(tmp_path, "intel-rapl:2", 9_000_000, "psys")
    set_counter(tmp_path, "intel-rapl-mmio:0", 1_000_000, "package-0")
    return tmp_path


class Gpus:
    """Stands for Zeus: its counters are set by the tests."""

    gpus: dict[int, float]
    cpus: dict[int, float] | None
    dram: dict[int, float] | None

    def __init__(self, cpu_indices: Any = None, approx_instant_energy: bool = True) -> None:
        assert approx_instant_energy is False, "an estimate"
        self.gpu_indices = list(type(self).gpus)
        self.cpu_indices = list(type(self).cpus or {}) if cpu_indices is None else cpu_indices
        self.power_monitor: Any = None
        self.windows: set[str] = set()

    def begin_window(self, key: str, sync_execution: bool = True) -> None:
        assert not sync_execution, "Zeus would import a framework"
        assert key not in self.windows
        self.windows.add(key)

    def end_window(self, key: str, sync_execution: bool = True, cancel: bool = False) -> Any:
        assert not sync_execution
        self.windows.remove(key)
        kind = type(self)
        return types.SimpleNamespace(gpu_energy=kind.gpus, cpu_energy=kind.cpus, dram_energy=kind.dram)


@pytest.fixture
def zeus(monkeypatch: pytest.MonkeyPatch) -> type[Gpus]:
    monitor = type("ZeusMonitor", (Gpus,), {"gpus": {0: 3.0, 1: 4.0}, "cpus": None, "dram": None})
    for name in ("zeus", "zeus.monitor"):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.ZeusMonitor = monitor  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    return monitor


@pytest.fixture
def no_zeus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(_energy_counters._ZEUS), "is_installed", lambda self: False)


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if getattr(t, "_target", None) is _energy_counters._keep_count]


def test_processors_and_their_memory_are_counted_once(machine: Path) -> None:
    counters = RaplCounters(machine)
    assert counters.domains == ("package-0", "dram of 0", "package-1")

    counters.start()
    set_counter(machine, "intel-rapl:0", 3_500_000)
    set_counter(machine, "intel-rapl:0:0", 2_000_000)
    set_counter(machine, "intel-rapl:0:1", 300_250)
    set_counter(machine, "intel-rapl:2", 99_000_000)

    assert counters.stop() == pytest.approx({"package-0": 2.5, "dram of 0": 0.00025, "package-1": 0.0})
    with pytest.raises(RuntimeError, match="no start"):
        counters.stop()


def test_counter_that_starts_again_is_continued(machine: Path) -> None:
    set_counter(machine, "intel-rapl:0", RANGE_UJ - 1_000_000)
    counters = RaplCounters(machine)
    counters.start()
    set_counter(machine, "intel-rapl:0", 500_000)

    assert counters.stop()["package-0"] == pytest.approx(1.5)


def test_long_run_may_start_the_counter_again_many_times(machine: Path) -> None:
    # The thread would wake every two minutes; here a small range makes it wake all the time.
    set_counter(machine, "intel-rapl:0", 0, "package-0", range_uj=1_000_000)
    counters = RaplCounters(machine)
    assert counters._period_s == pytest.approx(0.0005)
    domain = counters._domains[0]
    counters.start()
    total_uj, turns = 0, 0
    for value_uj in [600_000, 200_000, 800_000, 400_000, 100_000]:
        # Written whole, so that the thread reads the old or the new value.
        (machine / "new").write_text(str(value_uj))
        os.replace(machine / "new", machine / "intel-rapl:0" / "energy_uj")
        total_uj = value_uj
        waited = threading.Event()
        while domain.last_uj != value_uj and not waited.wait(0.001):
            turns += 1
            assert turns < 20_000

    # 0, 0.6, 1.2, 1.8, 2.4, 3.1 J
    assert counters.stop()["package-0"] == pytest.approx(3.1)
    assert total_uj == 100_000


def test_thread_ends_with_stop_with_the_next_start_and_with_its_object(machine: Path) -> None:
    counters = RaplCounters(machine)
    counters.start()
    first = threads()
    counters.start()
    first[0].join(10)
    assert len(threads()) == 1
    [thread] = threads()
    counters.stop()
    thread.join(10)
    assert threads() == []

    counters.start()
    [thread] = threads()
    del counters
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_counter_that_fails_during_a_run_is_said(machine: Path) -> None:
    counters = RaplCounters(machine)
    counters.start()
    set_counter(machine, "intel-rapl:1", "broken")
    with pytest.raises(UnavailableError, match="energy_uj holds 'broken', not a number of microjoules"):
        counters.stop()

    with pytest.raises(UnavailableError, match="broken"):
        RaplCounters(machine)


def test_failure_within_the_thread_reaches_whoever_waits(machine: Path) -> None:
    set_counter(machine, "intel-rapl:0", 0, "package-0", range_uj=1_000_000)
    counters = RaplCounters(machine)
    counters.start()
    [thread] = threads()
    (machine / "intel-rapl:1" / "energy_uj").unlink()
    thread.join(10)
    set_counter(machine, "intel-rapl:1", 2_000_000)  # it can be read again, but what was between is lost

    with pytest.raises(UnavailableError, match="energy_uj cannot be read"):
        counters.stop()


@pytest.mark.parametrize("name", ["core", "psys"])
def test_machine_without_a_processors_domain(tmp_path: Path, name: str) -> None:
    set_counter(tmp_path, "intel-rapl:0", 1, name)

    with pytest.raises(UnavailableError, match="no intel-rapl domain of a processor"):
        RaplCounters(tmp_path)
    with pytest.raises(UnavailableError, match="no intel-rapl domain"):
        RaplCounters(tmp_path / "missing")


def test_counter_that_only_root_may_read(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path, *_: Any) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return real(path)

    real = Path.read_text
    monkeypatch.setattr(Path, "read_text", read)

    with pytest.raises(UnavailableError, match="intel-rapl:0/energy_uj may only be read by root"):
        RaplCounters(machine)


def test_gpus_are_read_through_zeus(zeus: type[Gpus]) -> None:
    counters = ZeusCounters(processors=True)
    counters.start()

    assert counters.domains == ("gpu 0", "gpu 1")
    assert counters.stop() == {"gpu 0": 3.0, "gpu 1": 4.0}
    counters.start()
    counters.start()  # the run before failed
    assert counters.stop() == {"gpu 0": 3.0, "gpu 1": 4.0}


def test_processors_through_zeus_leave_the_platform_out(zeus: type[Gpus], machine: Path) -> None:
    zeus.gpus, zeus.cpus, zeus.dram = {}, {0: 10.0, 1: 20.0, 2: 99.0}, {0: 1.0}
    counters = ZeusCounters(processors=True, folder=machine)
    counters.start()

    assert counters.domains == ("package-0", "package-1")
    assert counters.stop() == {"package-0": 10.0, "package-1": 20.0, "dram-0": 1.0}


def test_zeus_that_would_estimate_is_refused(zeus: type[Gpus]) -> None:
    stopped: list[bool] = []
    polling = types.SimpleNamespace(stop=lambda: stopped.append(True))
    start = zeus.__init__

    def polled(self: Any, *arguments: Any, **options: Any) -> None:
        start(self, *arguments, **options)
        self.power_monitor = polling

    zeus.__init__ = polled  # type: ignore[method-assign]

    with pytest.raises(UnavailableError, match="a GPU has no energy counter"):
        ZeusCounters(processors=False)
    assert stopped == [True]


def test_zeus_that_fails_or_finds_nothing(zeus: type[Gpus], monkeypatch: pytest.MonkeyPatch) -> None:
    zeus.gpus = {}
    with pytest.raises(UnavailableError, match="Zeus finds no counter"):
        ZeusCounters(processors=True)

    def fail(self: Any, **_: Any) -> None:
        raise OSError("libnvidia-ml.so.1 is missing")

    zeus.__init__ = fail  # type: ignore[method-assign]
    with pytest.raises(UnavailableError, match="Zeus failed: OSError: libnvidia-ml"):
        ZeusCounters(processors=True)


def test_zeus_that_is_not_installed(no_zeus: None) -> None:
    with pytest.raises(UnavailableError, match="Zeus is not installed"):
        ZeusCounters(processors=True)


def test_processors_and_gpus_are_put_together(zeus: type[Gpus], machine: Path) -> None:
    counters = open_energy_counters(machine)
    counters.start()
    set_counter(machine, "intel-rapl:0", 2_000_000)

    assert counters.method == "Zeus and RAPL"
    assert counters.stop() == {"package-0": 1.0, "dram of 0": 0.0, "package-1": 0.0, "gpu 0": 3.0, "gpu 1": 4.0}


def test_what_there_is_is_taken(machine: Path, no_zeus: None) -> None:
    assert open_energy_counters(machine).method == "RAPL"
    with pytest.raises(UnavailableError, match=r"Zeus is not installed.*; .*no intel-rapl domain"):
        open_energy_counters(machine / "missing")


def test_zeus_alone_counts_what_linux_does_not_show(zeus: type[Gpus], tmp_path: Path) -> None:
    zeus.cpus = {0: 5.0}
    counters = open_energy_counters(tmp_path)
    counters.start()

    assert counters.method == "Zeus"
    assert counters.stop() == {"gpu 0": 3.0, "gpu 1": 4.0, "package-0": 5.0}
