"""JSON documents from elsewhere, whole."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from deep500.core.errors import FleetError
from deep500.core.strict_json import is_deep
from deep500.core.texts import message_of
from deep500.fleet.input_report import InputReport
from deep500.fleet.reader import text_of

__all__ = ["document_of", "documents_of"]

_SPACE = re.compile(r"[ \t\r\n]*")


def document_of(path: Path, report: InputReport) -> Any:
    """Return the value of a file in JSON.

    Raises:
        FleetError: It is not one value in JSON, or is nested too deeply.
    """
    values = documents_of(path, report)
    if len(values) != 1:
        raise FleetError(f"It holds {len(values)} JSON values; one is needed.")
    return values[0]


def documents_of(path: Path, report: InputReport) -> list[Any]:
    """Return the values of a file of JSON values, one after the other, as clients write that fetch page after page.

    Raises:
        FleetError: It is no JSON, or is nested too deeply.
    """
    text = text_of(path, report)
    decoder = json.JSONDecoder()
    values, at = [], 0
    try:
        while True:
            at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if at == len(text):
                break
            value, at = decoder.raw_decode(text, at)
            values.append(value)
    except (ValueError, RecursionError) as error:
        raise FleetError(f"It is no JSON that can be read: {message_of(error)}.") from error
    if any(map(is_deep, values)):
        raise FleetError("It is nested too deeply to be read.")
    return values
