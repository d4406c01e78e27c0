"""The measured peaks that a document quotes, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deep500.measure.document_view import DocumentView, SystemView, number_of, text_of
from deep500.measure.rules._parallel import is_on_accelerator

__all__ = ["QuotedPeak", "dtype_of", "fitting_peaks", "quoted_peaks"]


@dataclass(frozen=True)
class QuotedPeak:
    """One peak, in the form of :class:`deep500.measure.peak.Peak`.

    Attributes:
        flops_per_s: Operations a second; ``None`` when only the memory's rate is told.
        bytes_per_s: Bytes a second; ``None`` when only the rate of arithmetic is told.
        dtype: Dtype of the arithmetic.
        device: On which device; that of a peak that names none is the CPU.
    """

    flops_per_s: float | None
    bytes_per_s: float | None
    dtype: str | None
    device: str


def quoted_peaks(document: DocumentView) -> list[QuotedPeak]:
    """Return every object of the document that has a positive ``flops_per_s`` or ``bytes_per_s``."""
    found = []
    stack: list[Any] = [document.content]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            flops, moved = (_positive(value.get(key)) for key in ("flops_per_s", "bytes_per_s"))
            if flops is not None or moved is not None:
                device = text_of(value.get("device")) or "cpu"
                found.append(QuotedPeak(flops, moved, text_of(value.get("dtype")), device))
            stack += [item for item in value.values() if isinstance(item, (Mapping, list))]
        elif isinstance(value, list):
            stack += [item for item in value if isinstance(item, (Mapping, list))]
    return found


def fitting_peaks(document: DocumentView, system: SystemView) -> list[QuotedPeak]:
    """Return the peaks of the device that a system ran on."""
    on_accelerator = is_on_accelerator(system)
    return [peak for peak in quoted_peaks(document) if peak.device.lower().startswith("cpu") is not on_accelerator]


def dtype_of(system: SystemView) -> str | None:
    """Return the dtype of a system's arithmetic."""
    return text_of(system.work.get("dtype"))


def _positive(value: Any) -> float | None:
    number = number_of(value)
    return number if number is not None and number > 0 else None
