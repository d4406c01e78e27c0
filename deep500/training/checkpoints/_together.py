"""One checkpoint of several ranks: each writes its own files, and rank 0 puts the whole in its place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deep500.core.errors import FileWriteError
from deep500.training.checkpoints._layout import FileEntry
from deep500.training.ranks import Ranks

__all__ = ["write_together"]


def write_together(
    ranks: Ranks,
    *,
    begin: Callable[[], Path],
    write_own: Callable[[Path], Mapping[str, FileEntry]],
    commit: Callable[[Path, Mapping[str, FileEntry]], None],
    discard: Callable[[Path], None],
    refused: Callable[[OSError], FileWriteError],
) -> None:
    """Write a checkpoint, on all ranks together; it appears when all have written, or not at all.

    Args:
        ranks: Who writes.
        begin: On rank 0, makes a folder beside the checkpoint's place.
        write_own: Writes this rank's files into it, and returns what the manifest says of them.
        commit: On rank 0, writes the manifest of all files and puts the folder in its place.
        discard: On rank 0, removes the folder.
        refused: Returns the error for one of the system.

    Raises:
        FileWriteError: One rank could not write; all ranks get the same message, and nothing is left.
    """

    def checked(action: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            try:
                return action()
            except OSError as error:
                raise refused(error) from error

        return call

    made = ranks.first_does(checked(begin), FileWriteError)
    place = Path(ranks.decided(None if made is None else str(made)))
    try:
        report: dict[str, Any] = {"files": write_own(place), "error": None}
    except OSError as error:
        report = {"files": {}, "error": str(refused(error))}
    reports = ranks.gathered(report)
    failures = [f"rank {rank}: {found['error']}" for rank, found in enumerate(reports) if found["error"]]
    if failures:
        if ranks.is_first:
            with contextlib.suppress(OSError):
                discard(place)
        if ranks.size == 1:
            raise FileWriteError(report["error"])
        raise FileWriteError(
            f"{'; '.join(failures)}. All ranks write into one folder, which must be on a file system that they share."
        )
    files = {name: entry for found in reports for name, entry in found["files"].items()}
    ranks.first_does(checked(lambda: commit(place, files)), FileWriteError)
