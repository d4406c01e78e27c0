"""Counters of energy: those of the processors, which Linux shows (RAPL), and those that Zeus reads.

Only counters are read. What would be an estimate (power that is polled and integrated, power times time) is not taken.
"""

from __future__ import annotations

import importlib
import logging
import re
import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from deep500.core.errors import Deep500Error
from deep500.core.requirement import Requirement
from deep500.core.texts import message_of

__all__ = ["EnergyCounters", "RaplCounters", "UnavailableError", "ZeusCounters", "open_energy_counters"]

#: Where Linux shows the domains.
_POWERCAP = Path("/sys/class/powercap")

#: The domains of processors, and those within them: intel-rapl:0, intel-rapl:0:1. The same processors once more,
#: intel-rapl-mmio:0, are left out.
_DOMAIN = re.compile(r"intel-rapl:(\d+)(:\d+)?")

#: More than any processor takes, which says how soon a counter may have started again from 0.
_MOST_WATTS = 1000.0

_WINDOW = "deep500"

_ZEUS = Requirement("zeus", "energy", ("zeus", "zeus-ml"))

_logger = logging.getLogger(__name__)


class UnavailableError(Deep500Error):
    """Energy cannot be read here; the message is the reason."""


class EnergyCounters(Protocol):
    """What counts energy.

    Attributes:
        method: What is read, for people.
    """

    method: str

    def start(self) -> None:
        """Remember what the counters say."""

    def stop(self) -> dict[str, float]:
        """Return the joules since the start, by what took them."""


class RaplCounters:
    """The counters of all processors, and of the memory at them where that has its own (``dram``).

    A counter starts again from 0 at its end, after some minutes at full power. A thread that wakes well before that
    keeps count; it sleeps during runs that are shorter.

    Source: Linux kernel documentation, "Power Capping Framework".

    Attributes:
        method: ``"RAPL"``.
        domains: The names of what is counted, such as ``"package-0"``.
    """

    method = "RAPL"

    def __init__(self, folder: Path = _POWERCAP) -> None:
        """Find the domains, and read each once.

        Args:
            folder: Where they are.

        Raises:
            UnavailableError: There are none, or one may not be read.
        """
        found = [_Domain.read(entry) for entry in sorted(folder.glob("intel-rapl:*")) if _DOMAIN.fullmatch(entry.name)]
        # Cores lie within packages, and a platform's domain (psys) around them: they would be counted twice.
        self._domains = [domain for domain in found if domain.name.startswith("package") or domain.is_memory]
        if not any(domain.name.startswith("package") for domain in self._domains):
            raise UnavailableError(f"{folder} has no intel-rapl domain of a processor")
        # Some processors show a counter of memory that never moves.
        self._domains = [domain for domain in self._domains if domain.counter_uj() or not domain.is_memory]
        self.domains = tuple(domain.label for domain in self._domains)
        self._period_s = min(domain.range_uj for domain in self._domains) * 1e-6 / _MOST_WATTS / 2
        self._finish: Callable[[], Any] | None = None
        self._lock = threading.Lock()
        self._failures: list[UnavailableError] = []

    def start(self) -> None:
        """Remember what the counters say, and keep count from now on.

        Raises:
            UnavailableError: A counter can no longer be read.
        """
        if self._finish is not None:  # the run before this one failed, so that nobody called stop
            self._finish()
        for domain in self._domains:
            domain.last_uj, domain.total_uj = domain.counter_uj(), 0
        ended = threading.Event()
        self._failures = []
        arguments = (self._domains, self._lock, ended, self._period_s, self._failures)
        threading.Thread(target=_keep_count, args=arguments, daemon=True).start()
        self._finish = weakref.finalize(self, ended.set)

    def stop(self) -> dict[str, float]:
        """Return the joules since the start, by domain.

        Raises:
            UnavailableError: A counter could not be read.
        """
        if self._finish is None:
            raise RuntimeError("There was no start.")
        with self._lock:
            if self._failures:
                raise self._failures[0]
            for domain in self._domains:
                domain.advance()
            energies = {domain.label: domain.total_uj * 1e-6 for domain in self._domains}
        self._finish()
        self._finish = None
        return energies


class ZeusCounters:
    """The counters of GPUs, and of processors where asked for, that the library Zeus reads or its daemon hands out.

    Source: J. You, J.-W. Chung, M. Chowdhury, "Zeus: Understanding and Optimizing GPU Energy Consumption of DNN
    Training", NSDI 2023.

    Attributes:
        method: ``"Zeus"``.
        domains: The names of what is counted, such as ``"gpu 0"``.
    """

    method = "Zeus"

    def __init__(self, processors: bool, folder: Path = _POWERCAP) -> None:
        """Find the counters.

        Args:
            processors: Whether to count processors too.
            folder: Where Linux tells the names of their domains.

        Raises:
            UnavailableError: Zeus is not installed or fails, or counts nothing, or would estimate.
        """
        if not _ZEUS.is_installed():
            raise UnavailableError("Zeus is not installed (pip install zeus)")
        try:
            zeus = importlib.import_module("zeus.monitor")
            self._monitor = zeus.ZeusMonitor(cpu_indices=None if processors else [], approx_instant_energy=False)
        except Exception as error:  # a library of the system that is missing, a driver that answers badly
            raise UnavailableError(f"Zeus failed: {type(error).__name__}: {message_of(error)}") from error
        polled = self._monitor.power_monitor
        if polled is not None:
            polled.stop()
            raise UnavailableError("a GPU has no energy counter, so that Zeus would integrate its power")
        self._processors = [index for index in self._monitor.cpu_indices if _is_package(folder, index)]
        gpus = [f"gpu {index}" for index in self._monitor.gpu_indices]
        self.domains = (*gpus, *(f"package-{index}" for index in self._processors))
        if not self.domains:
            raise UnavailableError("Zeus finds no counter that it may read")
        self._started = False

    def start(self) -> None:
        """Remember what the counters say."""
        if self._started:  # the run before this one failed, so that nobody called stop
            self._monitor.end_window(_WINDOW, sync_execution=False, cancel=True)
        self._started = True
        self._monitor.begin_window(_WINDOW, sync_execution=False)

    def stop(self) -> dict[str, float]:
        """Return the joules since the start, by GPU and processor."""
        with warnings.catch_warnings():  # of a window shorter than a counter's period, which the metric looks at itself
            warnings.simplefilter("ignore")
            window = self._monitor.end_window(_WINDOW, sync_execution=False)
        self._started = False
        energies = {f"gpu {index}": float(energy) for index, energy in window.gpu_energy.items()}
        for kind, found in (("package", window.cpu_energy), ("dram", window.dram_energy)):
            energies |= {
                f"{kind}-{index}": float((found or {})[index]) for index in self._processors if index in (found or {})
            }
        return energies


class _Both:
    """GPUs through Zeus, processors through RAPL."""

    def __init__(self, processors: RaplCounters, gpus: ZeusCounters) -> None:
        self._processors, self._gpus = processors, gpus
        self.method = f"{gpus.method} and {processors.method}"

    def start(self) -> None:
        self._processors.start()
        self._gpus.start()

    def stop(self) -> dict[str, float]:
        energies = self._gpus.stop()
        return {**self._processors.stop(), **energies}


def open_energy_counters(folder: Path = _POWERCAP) -> EnergyCounters:
    """Return what can be read here: GPUs through Zeus, processors directly or else through Zeus.

    Processors that this process may read itself are not left to Zeus, which would start another process for each.

    Raises:
        UnavailableError: There is nothing; the message says why.
    """
    try:
        processors = RaplCounters(folder)
    except UnavailableError as error:
        try:
            return ZeusCounters(processors=True, folder=folder)
        except UnavailableError as other:
            raise UnavailableError(f"{message_of(other)}; {message_of(error)}") from other
    try:
        return _Both(processors, ZeusCounters(processors=False))
    except UnavailableError as error:
        _logger.debug("No GPUs are counted: %s", message_of(error))
        return processors


@dataclass
class _Domain:
    """One counter. It goes from 0 to ``range_uj``, and on from 0."""

    folder: Path
    name: str
    label: str
    range_uj: int
    last_uj: int = 0
    total_uj: int = 0

    @classmethod
    def read(cls, folder: Path) -> _Domain:
        name, range_uj = _text(folder / "name"), _whole(folder / "max_energy_range_uj")
        inner = _DOMAIN.fullmatch(folder.name)
        label = f"{name} of {inner[1]}" if inner and inner[2] else name
        return cls(folder, name, label, range_uj)

    @property
    def is_memory(self) -> bool:
        return self.name == "dram"

    def counter_uj(self) -> int:
        return _whole(self.folder / "energy_uj")

    def advance(self) -> None:
        now_uj = self.counter_uj()
        self.total_uj += now_uj - self.last_uj + (self.range_uj if now_uj < self.last_uj else 0)
        self.last_uj = now_uj


def _keep_count(
    domains: list[_Domain],
    lock: threading.Lock,
    ended: threading.Event,
    period_s: float,
    failures: list[UnavailableError],
) -> None:
    while not ended.wait(period_s):
        with lock:
            try:
                for domain in domains:
                    domain.advance()
            except UnavailableError as error:  # for whoever waits for the sum
                failures.append(error)
                return


def _is_package(folder: Path, index: int) -> bool:
    """Whether Linux calls a domain one of a processor; without a name it is taken for one."""
    name = folder / f"intel-rapl:{index}" / "name"
    return not name.exists() or _text(name).startswith("package")


def _whole(path: Path) -> int:
    text = _text(path)
    if not text.isdigit():
        raise UnavailableError(f"{path} holds {text[:40]!r}, not a number of microjoules")
    return int(text)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except PermissionError as error:
        raise UnavailableError(f"{path} may only be read by root") from error
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read: {error.strerror or error}") from error
