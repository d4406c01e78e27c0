"""Where the files of data sets lie."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from deep500.core.errors import DatasetError

__all__ = ["DATA_VARIABLE", "data_folder"]

#: Environment variable that names the folder.
DATA_VARIABLE = "DEEP500_DATA"


def data_folder(folder: str | PathLike[str] | None = None) -> Path:
    """Return the folder in which data sets are looked for; it need not exist.

    Args:
        folder: The folder; by default the one that the environment variable ``DEEP500_DATA`` names, else
            ``deep500/datasets`` in the user's cache (``~/.cache`` on Linux, unless ``XDG_CACHE_HOME`` says otherwise).

    Raises:
        DatasetError: It starts with ``~``, and there is no such home folder.
    """
    named = folder if folder is not None else os.environ.get(DATA_VARIABLE)
    if named:
        try:
            return Path(named).expanduser()
        except RuntimeError as error:
            source = "" if folder is not None else f" by the environment variable {DATA_VARIABLE}"
            raise DatasetError(
                f"The folder of data sets was named {os.fspath(named)!r}{source}, and there is no such home folder. "
                f"Give a path that does not start with '~'."
            ) from error

    import platformdirs

    return platformdirs.user_cache_path("deep500", appauthor=False) / "datasets"
