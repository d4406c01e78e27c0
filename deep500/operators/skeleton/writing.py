"""Writing a new operator's files: all of them, or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from deep500.core.errors import FileWriteError
from deep500.core.files import check_writable, write_atomically
from deep500.core.signals import signals_deferred
from deep500.core.texts import shown_path
from deep500.operators.skeleton.names import check_skeleton_name
from deep500.operators.skeleton.rendering import Form, render_skeleton

__all__ = ["write_skeleton"]


def write_skeleton(
    name: str,
    form: Form = "cpp",
    *,
    folder: str | PathLike[str] = ".",
    inputs: int = 1,
    outputs: int = 1,
    replace: bool = False,
) -> list[Path]:
    """Write the files of a new operator: ``NAME.py``, its source (``NAME.cpp``, ``NAME.cu``), ``test_NAME.py``.

    Args:
        name: Name of the operator, such as ``"smooth_clip"``; its class is then ``SmoothClip``.
        form: ``"python"``, ``"cpp"`` or ``"cuda"``; the last two have a form in NumPy too, which the tests compare.
        folder: Where to; it has to exist.
        inputs: Number of inputs, from 1 to 8.
        outputs: Number of outputs, from 1 to 8.
        replace: Write over files of these names.

    Returns:
        The files, in the order in which they are of interest.

    Raises:
        OperatorError: The name is none that a file, a class and a C++ function can have, or the numbers are wrong.
        FileWriteError: A file is there already, or cannot be written. Then nothing has changed.
    """
    place = Path(folder)
    texts = render_skeleton(check_skeleton_name(name, place), form, inputs=inputs, outputs=outputs)
    files = {place / file: text for file, text in texts.items()}
    if not place.is_dir():
        what = "is no folder" if os.path.lexists(place) else "does not exist"
        raise FileWriteError(f"The files of {name} cannot be written to {shown_path(place)}: it {what}. Make it first.")
    present = [path for path in files if os.path.lexists(path)]
    if present and not replace:
        verb = "is" if len(present) == 1 else "are"
        raise FileWriteError(
            f"{', '.join(map(shown_path, present))} {verb} there already, so nothing was written. Choose another name "
            f"or folder, or replace by --force."
        )
    for path in files:
        check_writable(path, "operator's file")
    _write_all(files)
    return list(files)


def _write_all(files: Mapping[Path, str]) -> None:
    """Write files; where one cannot be written, put back what the others were."""
    before: dict[Path, bytes | None] = {}
    with signals_deferred():
        try:
            for path, text in files.items():
                before[path] = path.read_bytes() if path.is_file() else None
                write_atomically(path, text, "operator's file")
        except (OSError, FileWriteError) as error:
            for path, content in before.items():
                if content is None:
                    path.unlink(missing_ok=True)
                else:
                    with contextlib.suppress(FileWriteError):  # of the file that was not changed, for one
                        write_atomically(path, content)
            if isinstance(error, FileWriteError):
                raise
            raise FileWriteError(f"{shown_path(error.filename)} cannot be read: {error.strerror}") from error
