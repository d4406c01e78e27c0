"""Reading checkpoints, and passing over those that are damaged."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import CheckpointError
from deep500.core.texts import message_of, shown, shown_path
from deep500.training.checkpoints._encoding import decode
from deep500.training.checkpoints._layout import (
    FORMAT,
    MANIFEST,
    STATE,
    TENSORS,
    VERSION,
    VERSION_OF_RANKS,
    rank_file,
    step_folders,
)
from deep500.training.ranks import ALONE, Ranks

__all__ = ["Checkpoint", "check_identity", "checkpoint_folders", "load_checkpoint", "load_latest"]

_logger = logging.getLogger(__name__)

#: How many differences a message tells.
_MOST_DIFFERENCES = 6


class _RefusedError(CheckpointError):
    """A checkpoint is not damaged, and cannot be used here: those before it are no way out."""


class _OtherVersionError(_RefusedError):
    """A checkpoint is whole, and of a format that this version does not read."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds.

    Attributes:
        folder: Where it lies.
        step: Number of steps that were done.
        state: What :meth:`deep500.training.trainer.Trainer.restore` takes.
        identity: What training it is.
        written: When it was written, UTC, ISO 8601.
        version: Version of Deep500 that wrote it.
    """

    folder: Path
    step: int
    state: dict[str, Any]
    identity: dict[str, Any]
    written: str
    version: str


def checkpoint_folders(folder: str | PathLike[str]) -> list[Path]:
    """Return the checkpoints in a folder, whole or not, the oldest first."""
    return [path for _, path in step_folders(Path(folder))]


def load_checkpoint(path: str | PathLike[str], *, rank: int = 0, ranks: int = 1) -> Checkpoint:
    """Return what one checkpoint holds, ``step-000000123/``, once all checksums are right.

    Args:
        path: Its folder.
        rank: Of several ranks, whose state is returned; only that rank's files are read.
        ranks: Number of ranks that go on.

    Raises:
        CheckpointError: It is missing or damaged, or of another number of ranks.
    """
    folder = Path(path)
    try:
        manifest = _manifest(folder)
        _check_ranks(folder, manifest.get("ranks", 1), ranks)
        names = [rank_file(name, rank, ranks) for name in (TENSORS, STATE)]
        tensors, text = (_checked_file(folder / name, manifest["files"][name]) for name in names)
        state = decode(json.loads(text), tensors)
        identity, step = manifest["identity"], manifest["step"]
        written, version = str(manifest["written"]), str(manifest["deep500"])
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {shown_path(folder)} is damaged: {error.strerror or error} "
            f"({Path(error.filename or folder).name})."
        ) from error
    except _OtherVersionError as error:
        raise _OtherVersionError(
            f"The checkpoint {shown_path(folder)} is of another version of Deep500: {error}. Go on with the version "
            f"that wrote it, or move it away to go on from the one before it."
        ) from None
    except _RefusedError:
        raise
    except CheckpointError as error:
        raise CheckpointError(f"The checkpoint {shown_path(folder)} is damaged: {error}.") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"The checkpoint {shown_path(folder)} is damaged: {message_of(error)}.") from error
    return Checkpoint(folder, step, state, identity, written, version)


def load_latest(folder: str | PathLike[str], ranks: Ranks = ALONE) -> Checkpoint:
    """Return the newest checkpoint of a folder that is whole; each damaged one that is newer is told of by a warning.

    Args:
        folder: Where checkpoints lie.
        ranks: Who goes on: each rank with its own state. All of them call this, and a checkpoint is whole where the
            files of all are.

    Raises:
        CheckpointError: There is none, none is whole, or the newest one is of another version of Deep500 or of another
            number of ranks.
    """
    place = Path(folder)
    found = [place / name for name in ranks.decided([path.name for path in checkpoint_folders(place)])]
    if not found:
        kind = "is no folder" if place.exists() and not place.is_dir() else "holds no checkpoint"
        kind = kind if place.exists() else "does not exist"
        raise CheckpointError(f"There is nothing to go on from: {shown_path(place)} {kind}.")
    for path in reversed(found):
        checkpoint, failure = _attempt(path, ranks)
        failures = [text for text in ranks.gathered(None if failure is None else str(failure)) if text is not None]
        if ranks.decided(isinstance(failure, _RefusedError)):  # what comes after it would take its place
            raise failure or CheckpointError(failures[0])
        if checkpoint is not None and not failures:
            return checkpoint
        if ranks.is_first:
            _logger.warning("%s%s", failures[0], "" if path is found[0] else " The one before it is tried.")
    raise CheckpointError(
        f"There is nothing to go on from: each of the {len(found)} checkpoints in {shown_path(place)} is damaged."
    )


def _attempt(path: Path, ranks: Ranks) -> tuple[Checkpoint | None, CheckpointError | None]:
    try:
        return load_checkpoint(path, rank=ranks.rank, ranks=ranks.size), None
    except CheckpointError as error:
        return None, error


def _check_ranks(folder: Path, written: int, here: int) -> None:
    """Check that a checkpoint is of as many ranks as go on: each has a state of its own."""
    if written != here:
        raise _RefusedError(
            f"The checkpoint {shown_path(folder)} was written by {_ranks(written)}, and here {_ranks(here)} would go "
            f"on. Accepted is the number that wrote it, since each rank has a state of its own: go on with "
            f"{_ranks(written)}, or start anew in another folder."
        )


def _ranks(count: int) -> str:
    return "a single process" if count == 1 else f"{count} ranks"


def check_identity(saved: Mapping[str, Any], here: Mapping[str, Any], ignored: Iterable[str] = ()) -> None:
    """Check that a checkpoint is of the training that is to go on.

    Args:
        saved: The identity in the checkpoint.
        here: The identity of the training that is to go on.
        ignored: Names of the entries that may differ.

    Raises:
        CheckpointError: They differ; the message tells in what.
    """
    passed_over = set(ignored)
    differences = [
        difference for difference in _differences(saved, here, "") if difference[0].split(".")[0] not in passed_over
    ]
    if differences:
        told = "; ".join(f"{name} was {old}, now it is {new}" for name, old, new in differences[:_MOST_DIFFERENCES])
        more = len(differences) - _MOST_DIFFERENCES
        raise CheckpointError(
            f"The checkpoint is of another training: {told}{f'; and {more} more' if more > 0 else ''}. Go on with what "
            f"it was made with, or start anew in another folder."
        )


def _differences(saved: Any, here: Any, name: str) -> list[tuple[str, str, str]]:
    if isinstance(saved, Mapping) and isinstance(here, Mapping):
        keys = dict.fromkeys([*saved, *here])
        pairs = [(saved.get(key, _ABSENT), here.get(key, _ABSENT), f"{name}.{key}".lstrip(".")) for key in keys]
        return [difference for old, new, place in pairs for difference in _differences(old, new, place)]
    return [] if saved == here else [(name, _told(saved), _told(here))]


class _Absent:
    """Stands for what is not there."""


_ABSENT = _Absent()


def _told(value: Any) -> str:
    return "not given" if value is _ABSENT else shown(value)


def _manifest(folder: Path) -> dict[str, Any]:
    """Return a checkpoint's manifest, whose own checksum is right."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{MANIFEST} is no JSON document") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(f"{MANIFEST} is not that of a checkpoint")
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    is_whole = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest() == manifest.get("sha256")
    version = manifest.get("version")
    if version not in (VERSION, VERSION_OF_RANKS):
        kind = _OtherVersionError if is_whole else CheckpointError
        raise kind(f"it has version {shown(version)} of the format; accepted are {VERSION} and {VERSION_OF_RANKS}")
    if not is_whole:
        raise CheckpointError(f"{MANIFEST} has another SHA-256 than it says")
    return manifest


def _checked_file(path: Path, entry: Mapping[str, Any]) -> bytes:
    content = path.read_bytes()
    if len(content) != entry["bytes"]:
        raise CheckpointError(f"{path.name} has {len(content):,} bytes instead of {entry['bytes']:,}")
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise CheckpointError(f"{path.name} has another SHA-256 than {MANIFEST} says")
    return content
