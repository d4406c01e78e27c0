from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep500.operators.native import devices
from deep500.operators.native.devices import cuda_device_count


class Library:
    """A library of the driver that counts devices, or fails."""

    def __init__(self, number: int, status: int = 0) -> None:
        self.number, self.status, self.started = number, status, 0

    def start(self, *arguments: Any) -> int:
        self.started += 1
        return self.status

    def count(self, pointer: Any) -> int:
        pointer._obj.value = self.number
        return 0

    nvmlInit_v2 = cuInit = start  # noqa: N815 - the driver's names
    nvmlDeviceGetCount_v2 = cuDeviceGetCount = count  # noqa: N815


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Ask anew in each test, on a machine with a driver's device file, and hide nothing."""
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(devices, "_DEVICE_FILES", (str(tmp_path / "nvidia0"),))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    cuda_device_count.cache_clear()
    yield
    cuda_device_count.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, libraries: dict[str, Library]) -> None:
    def load(name: str) -> Library:
        if name not in libraries:
            raise OSError(f"{name}: cannot open shared object file")
        return libraries[name]

    monkeypatch.setattr(ctypes, "CDLL", load)


def test_no_device_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = Library(2)
    install(monkeypatch, {"libnvidia-ml.so.1": library})
    monkeypatch.setattr(devices, "_DEVICE_FILES", (str(tmp_path / "none"),))

    assert cuda_device_count() == 0
    assert library.started == 0


@pytest.mark.parametrize(("visible", "count"), [("", 0), ("-1", 0), (" ", 0), ("0", 2), ("GPU-8a", 2)])
def test_hidden_devices(monkeypatch: pytest.MonkeyPatch, visible: str, count: int) -> None:
    install(monkeypatch, {"libnvidia-ml.so.1": Library(2)})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert cuda_device_count() == count


def test_cuda_is_not_started_where_the_management_library_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Library(2)
    install(monkeypatch, {"libnvidia-ml.so.1": Library(2), "libcuda.so.1": cuda})

    assert cuda_device_count() == 2
    assert cuda.started == 0


@pytest.mark.parametrize("management", [{}, {"libnvidia-ml.so.1": Library(9, status=1)}])
def test_cuda_is_asked_else(monkeypatch: pytest.MonkeyPatch, management: dict[str, Library]) -> None:
    install(monkeypatch, {**management, "libcuda.so.1": Library(1)})

    assert cuda_device_count() == 1


def test_a_driver_that_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"libcuda.so.1": Library(3, status=100)})

    assert cuda_device_count() == 0


def test_it_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(1)
    install(monkeypatch, {"libnvidia-ml.so.1": library})

    assert [cuda_device_count() for _ in range(3)] == [1, 1, 1]
    assert library.started == 1
