"""Writing checkpoints that appear whole or not at all."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from deep500._version import __version__
from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, FileWriteError
from deep500.core.signals import signals_deferred
from deep500.core.texts import shown_path
from deep500.training.checkpoints._encoding import encode
from deep500.training.checkpoints._layout import (
    FORMAT,
    MANIFEST,
    STATE,
    TENSORS,
    VERSION,
    VERSION_OF_RANKS,
    FileEntry,
    folder_name,
    rank_file,
    step_folders,
)
from deep500.training.checkpoints._together import write_together
from deep500.training.ranks import ALONE, Ranks

__all__ = ["CheckpointWriter"]

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

_logger = logging.getLogger(__name__)

_LEFTOVER = re.compile(r"\.step-\d+\.(\d+)\..*")


class CheckpointWriter:
    """Writes checkpoints into a folder, one folder ``step-000000123/`` each, and keeps the last ones.

    A checkpoint is written beside its place, synced to the disk, and renamed. A process that is killed at any moment,
    and a disk that is full, leave all older checkpoints as they were; no part of a checkpoint is ever in a
    checkpoint's place.

    Several ranks write one checkpoint together: each its own state in files of its own, and rank 0 the manifest of
    all when they are written.

    Attributes:
        folder: Where to.
        keep: How many of the newest stay.
        identity: What training it is, for whoever wants to go on with it; see
            :func:`deep500.training.checkpoints.check_identity`.
    """

    def __init__(
        self, folder: str | PathLike[str], keep: int = 3, *, identity: Mapping[str, Any] | None = None
    ) -> None:
        """Set where and how many.

        Args:
            folder: Where to; it is made when something is written.
            keep: How many of the newest checkpoints stay.
            identity: What training it is, in JSON's types.

        Raises:
            CheckpointError: ``keep`` is not a whole number from 1.
        """
        self.folder = Path(folder)
        self.keep = check_count("keep", keep, least=1, error=CheckpointError)
        self.identity = dict(identity or {})
        self._lock: int | None = None  # handle of the folder while it is taken

    def prepare(self, ranks: Ranks = ALONE) -> None:
        """Make the folder, check that it can be written to, and remove what a killed process left behind.

        Until :meth:`release`, or the end of the process, no other writer can prepare the same folder.

        Args:
            ranks: Who writes; rank 0 prepares.

        Raises:
            FileWriteError: It cannot be written to, or another training writes to it.
        """
        ranks.first_does(self._prepare, FileWriteError)

    def _prepare(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
            self._take()
        except FileWriteError:
            raise
        except OSError as error:
            raise self._refused(error) from error
        for path in self.folder.iterdir():
            found = _LEFTOVER.fullmatch(path.name)
            if found and not _is_running(int(found[1])):
                shutil.rmtree(path, ignore_errors=True)

    def release(self) -> None:
        """Let other writers have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write(self, state: Mapping[str, Any], step: int, ranks: Ranks = ALONE) -> Path:
        """Write a checkpoint, in the place of one of the same step, and remove the oldest ones.

        Args:
            state: What :meth:`deep500.training.trainer.Trainer.state` returned.
            step: Number of steps that were done.
            ranks: Who writes it, each its own state; all of them call this.

        Returns:
            The checkpoint's folder.

        Raises:
            CheckpointError: The state holds something that a checkpoint cannot hold.
            FileWriteError: It cannot be written. All older checkpoints are as they were, and nothing of it is left.
        """
        document, tensors = encode(state)
        parts = {TENSORS: tensors, STATE: json.dumps(document, allow_nan=False).encode()}
        contents = {rank_file(name, ranks.rank, ranks.size): content for name, content in parts.items()}
        target = self.folder / folder_name(step)
        with signals_deferred():
            write_together(
                ranks,
                begin=lambda: self._begin(target),
                write_own=lambda place: self._write_files(place, contents),
                commit=lambda place, files: self._commit(place, target, self._manifest(step, files, ranks.size)),
                discard=shutil.rmtree,
                refused=self._refused,
            )
        if ranks.is_first:
            self._remove_oldest(step)
        return target

    def _manifest(self, step: int, files: Mapping[str, FileEntry], ranks: int) -> bytes:
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION if ranks == 1 else VERSION_OF_RANKS,
            "deep500": __version__,
            "step": step,
            "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "files": dict(files),
            "identity": self.identity,
        }
        if ranks > 1:
            manifest["ranks"] = ranks
        manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        return json.dumps(manifest, indent=2).encode()  # without a line end, each cut shows

    def _begin(self, target: Path) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self.folder, prefix=f".{target.name}.{os.getpid()}."))

    def _write_files(self, place: Path, contents: Mapping[str, bytes]) -> dict[str, FileEntry]:
        try:
            for name, content in contents.items():
                _write_file(place / name, content)
        except OSError:  # told to the other ranks, who may be writing there still
            raise
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        return {n: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for n, c in contents.items()}

    def _commit(self, temporary: Path, target: Path, manifest: bytes) -> None:
        """Write the manifest beside the files that lie in a folder, and put the folder in its place."""
        replaced: Path | None = None
        try:
            _write_file(temporary / MANIFEST, manifest)
            _sync_folder(temporary)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o777 & ~mask)
            if target.exists():
                replaced = Path(tempfile.mkdtemp(dir=self.folder, prefix=f".{target.name}.{os.getpid()}."))
                os.replace(target, replaced / "replaced")
            os.replace(temporary, target)
            _sync_folder(self.folder)
        except BaseException:
            if replaced is not None and not target.exists():
                with contextlib.suppress(OSError):
                    os.replace(replaced / "replaced", target)
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        finally:
            if replaced is not None:
                shutil.rmtree(replaced, ignore_errors=True)

    def _remove_oldest(self, written: int) -> None:
        """Remove the oldest checkpoints up to the one that was written.

        What lies there of later steps is damaged, or it would have been gone on from; it counts as nothing that is
        kept.
        """
        known = [path for step, path in step_folders(self.folder) if step <= written]
        for path in known[: -self.keep]:
            try:
                shutil.rmtree(path)
            except OSError as error:
                _logger.warning("The old checkpoint %s cannot be removed: %s", shown_path(path), error)

    def _refused(self, error: OSError) -> FileWriteError:
        reason = error.strerror or str(error)
        if isinstance(error, (FileExistsError, NotADirectoryError)):
            reason = "there is something on this path that is no folder. Name another folder."
        return FileWriteError(f"The checkpoint cannot be written to {shown_path(self.folder)}: {reason}")

    def _take(self) -> None:
        """Let no other process write to the folder, for as long as this one lives or until :meth:`release`."""
        if fcntl is None or self._lock is not None:
            return
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise FileWriteError(
                f"Another training writes its checkpoints to {shown_path(self.folder)} at this moment. Name another "
                f"folder, or wait for its end."
            ) from None
        except OSError:  # a file system without locks
            os.close(handle)
        else:
            self._lock = handle


def _write_file(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Let a folder's entries reach the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
