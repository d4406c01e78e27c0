"""The text of a ``custom:`` workload, written and read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.measure.workload import WorkloadSpec

__all__ = ["OWN_OPTIONS", "custom_text", "read_name"]

#: Options of the workload itself; the point keeps them from attributes of operators, which have names without one.
OWN_OPTIONS = ("call.size", "call.dtype", "call.inputs", "call.mode", "call.seed", "call.against")


def custom_text(
    path: str | Path,
    name: str,
    attributes: Mapping[str, Any],
    *,
    framework: str | None = None,
    device: str | None = None,
    inputs: Sequence[TensorDescriptor] | None = None,
    **options: str | int | None,
) -> str:
    """Return the text of a workload that calls an operator.

    Args:
        path: The file.
        name: The operator's name in it.
        attributes: Values of its attributes.
        framework: Who runs it.
        device: Where.
        inputs: What its inputs are like; by default the workload finds out.
        **options: Further ones of the workload's own, without ``call.``; ``None`` for those that are not given.
    """
    given: dict[str, Any] = {f"call.{key}": value for key, value in options.items() if value is not None}
    if inputs is not None:
        given["call.inputs"] = [f"{'x'.join(map(str, d.shape or ())) or 'scalar'}:{d.dtype}" for d in inputs]
    place = f"{path}:{name}"
    parts = [place if _is_plain(place) else repr(place)]
    parts += [f"{key}={value!r}" for key, value in {**attributes, **given}.items()]
    at = "" if framework is None else f"@{framework}" + (f":{device}" if device else "")
    return f"custom:{','.join(parts)}{at}"


def read_name(spec: WorkloadSpec) -> tuple[Path, str | None]:
    """Return the file of a workload's text, and the operator in it; ``None`` where the text names none.

    Raises:
        MeasurementError: It names no file.
    """
    path, colon, name = spec.name.rpartition(":")
    if colon and re.fullmatch(r"[^\W\d]\w*", name):
        found: tuple[Path, str | None] = Path(path), name
    else:
        found = Path(spec.name), None
    if not str(found[0]).strip() or str(found[0]) == ".":
        raise MeasurementError(f"{spec.text!r} names no file; accepted is custom:FILE.py:NAME.")
    return found


def _is_plain(text: str) -> bool:
    """Whether a text stands in a workload's text as it is."""
    return bool(re.fullmatch(r"[\w./+: -]*", text)) and text == text.strip()
