"""One checkpoint of several ranks: each writes its own files, and rank 0 puts the whole in its place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from deep500.core.errors import FileWriteError
from deep500.training.checkpoints._layout import FileEntry
from deep500.training.ranks import Ranks

__all__ = ["write_together"]

_Result = TypeVar("_Result")


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
        FileWriteError: One rank could not write, or was lost meanwhile; all ranks get the same message, and nothing is
            left. Those that are left may write another one, of what they are then.
    """
    members = ranks.members
    made = ranks.first_does(_checked(begin, refused), FileWriteError)
    name = ranks.decided(None if made is None else str(made))
    place = Path(name or "")

    def give_up(message: str) -> NoReturn:
        if ranks.is_first and name is not None:
            with contextlib.suppress(OSError):
                discard(place)
        raise FileWriteError(message)

    def check_members() -> None:
        if ranks.members != members:
            give_up("A rank was lost while the checkpoint was written")

    check_members()
    try:
        report: dict[str, Any] = {"files": write_own(place), "error": None}
    except OSError as error:
        report = {"files": {}, "error": str(refused(error))}
    reports = ranks.gathered(report)
    check_members()
    failures = [f"rank {rank}: {found['error']}" for rank, found in enumerate(reports) if found["error"]]
    if failures:
        why = "All ranks write into one folder, which must be on a file system that they share."
        give_up(report["error"] if ranks.size == 1 else f"{'; '.join(failures)}. {why}")
    files = {name: entry for found in reports for name, entry in found["files"].items()}

    def commit_if_whole() -> None:
        if ranks.members == members:  # else the first rank was lost, and the files are of more ranks than are left
            commit(place, files)

    ranks.first_does(_checked(commit_if_whole, refused), FileWriteError)
    check_members()


def _checked(action: Callable[[], _Result], refused: Callable[[OSError], FileWriteError]) -> Callable[[], _Result]:
    """Return an action that raises our errors instead of the system's."""

    def call() -> _Result:
        try:
            return action()
        except OSError as error:
            raise refused(error) from error

    return call
