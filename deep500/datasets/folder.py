"""Where the files of data sets lie."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from deep500.core.errors import DatasetError
from deep500.core.texts import shown, shown_path

__all__ = ["DATA_VARIABLE", "data_folder", "may_download"]

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
            place = Path(named).expanduser()
            place.exists()  # which fails where there can be no such path
            return place
        except (TypeError, OSError) as error:
            raise DatasetError(
                f"The folder of data sets was given as {shown(named)}; accepted is the path of a folder "
                f"({getattr(error, 'strerror', None) or error})."
            ) from error
        except RuntimeError as error:
            source = "" if folder is not None else f" by the environment variable {DATA_VARIABLE}"
            raise DatasetError(
                f"The folder of data sets was named {os.fspath(named)!r}{source}, and there is no such home folder. "
                f"Give a path that does not start with '~'."
            ) from error

    import platformdirs

    return platformdirs.user_cache_path("deep500", appauthor=False) / "datasets"


def may_download(folder: str | PathLike[str] | None, download: bool) -> bool:
    """Whether files may be downloaded to a folder: a mistyped one is not made and filled.

    Args:
        folder: The folder that a user named, ``None`` for the default.
        download: Whether the user wants it.

    Raises:
        DatasetError: ``download`` is neither True nor False, or the named path is a file.
    """
    if not isinstance(download, bool):
        raise DatasetError(f"download was given as {download!r}; accepted are True and False.")
    named = None if folder is None else data_folder(folder)
    if named is not None and named.exists() and not named.is_dir():
        raise DatasetError(f"folder was given as {shown_path(named)}, which is a file; accepted is a folder.")
    return download and (named is None or named.is_dir())
