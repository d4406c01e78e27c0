"""What a workload says of itself, checked before it stands in a result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from deep500.core.errors import Deep500Error, MeasurementError
from deep500.core.texts import message_of, shown
from deep500.measure.workload import Score, Work, Workload

__all__ = ["describe_workload"]


def describe_workload(workload: Workload, name: str) -> dict[str, Any]:
    """Return what a workload says of itself, after its runs, by the names of :class:`System`'s fields.

    Args:
        workload: The workload.
        name: What messages call it.

    Raises:
        MeasurementError: It cannot say it, or says what a result file could not hold; the message names the property.
    """
    try:
        said: dict[str, Any] = {
            "identity": workload.identity,
            "factors": workload.factors,
            "data_hash": workload.data_hash,
            "initialisation_hash": workload.initialisation_hash,
            "work": workload.work,
            "scores": tuple(workload.scores()),
        }
    except Deep500Error:
        raise
    except Exception as error:
        raise MeasurementError(
            f"{name} was measured but cannot say what it is: {type(error).__name__}: {message_of(error)}"
        ) from error
    for key in ("identity", "factors"):
        said[key] = _checked_mapping(name, key, said[key])
    for key in ("data_hash", "initialisation_hash"):
        if said[key] is not None and not (isinstance(said[key], str) and re.fullmatch("[0-9a-f]{64}", said[key])):
            raise _refused(name, key, said[key], "64 hexadecimal digits, and None")
    if not isinstance(said["work"], Work):
        raise _refused(name, "work", said["work"], "a deep500.measure.Work")
    for score in said["scores"]:
        if not isinstance(score, Score):
            raise _refused(name, "scores()", score, "a list of deep500.measure.Score")
    if type(workload).synchronize is not Workload.synchronize:
        said["factors"]["synchronised"] = "before and after each sample"
    return said


def _checked_mapping(name: str, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(entry, str) for entry in value):
        raise _refused(name, key, value, "a dictionary with texts as keys")
    for entry, part in value.items():
        is_scalar = part is None or type(part) in (str, int, float, bool)
        if key == "factors" and not is_scalar:
            raise _refused(name, f"{key}[{entry!r}]", part, "texts, Python's numbers, True, False and None")
        try:
            json.dumps(part, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            accepted = "what JSON holds: texts, Python's finite numbers, lists and dictionaries"
            raise _refused(name, f"{key}[{entry!r}]", part, accepted) from error
    return dict(value)


def _refused(name: str, key: str, value: Any, accepted: str) -> MeasurementError:
    kind = type(value)
    where = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return MeasurementError(
        f"{name} says of itself that its {key} is {shown(value)} (a {where}{kind.__name__}); accepted: {accepted}."
    )
