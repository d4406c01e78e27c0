"""Writing a measurement in the format of another tool."""

from __future__ import annotations

from os import PathLike

from deep500.core.errors import PluginError
from deep500.core.files import write_atomically
from deep500.core.registry import Registry
from deep500.measure.results.document import Measurement

__all__ = ["EXPORTS", "export", "exported"]

#: The formats, one file each in ``deep500/measure/exports``: a function from a measurement to the text of the file.
EXPORTS = Registry("export format", "deep500.measure.exports")


def export(measurement: Measurement, form: str, path: str | PathLike[str]) -> None:
    """Write a measurement in the format of another tool; the file appears whole or not at all.

    Args:
        measurement: What to write.
        form: The format, such as ``"pyperf"``.
        path: Where to.

    Raises:
        UnknownNameError: There is no such format.
        MeasurementError: The format cannot hold the measurement.
        FileWriteError: The file cannot be written.
    """
    write_atomically(path, exported(measurement, form), "export")


def exported(measurement: Measurement, form: str) -> str:
    """Return the text of a measurement in the format of another tool.

    Raises:
        UnknownNameError: There is no such format.
        MeasurementError: The format cannot hold the measurement.
    """
    text = EXPORTS.get(form)(measurement)
    if not isinstance(text, str):
        raise PluginError(f"The export format {form!r} returned a {type(text).__name__} instead of a text.")
    return text
