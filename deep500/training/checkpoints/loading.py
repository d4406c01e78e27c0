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
from deep500.training.checkpoints._layout import FORMAT, MANIFEST, STATE, TENSORS, VERSION, step_folders

__all__ = ["Checkpoint", "check_identity", "checkpoint_folders", "load_checkpoint", "load_latest"]

_logger = logging.getLogger(__name__)

#: How many differences a message tells.
_MOST_DIFFERENCES = 6


class _OtherVersionError(CheckpointError):
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


def load_checkpoint(path: str | PathLike[str]) -> Checkpoint:
    """Return what one checkpoint holds, ``step-000000123/``, once all its checksums are right.

    Raises:
        CheckpointError: It is missing or damaged.
    """
    folder = Path(path)
    try:
        manifest = _manifest(folder)
        contents = {name: _checked_file(folder / name, manifest["files"][name]) for name in (TENSORS, STATE)}
        state = decode(json.loads(contents[STATE]), contents[TENSORS])
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
    except CheckpointError as error:
        raise CheckpointError(f"The checkpoint {shown_path(folder)} is damaged: {error}.") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"The checkpoint {shown_path(folder)} is damaged: {message_of(error)}.") from error
    return Checkpoint(folder, step, state, identity, written, version)


def load_latest(folder: str | PathLike[str]) -> Checkpoint:
    """Return the newest checkpoint of a folder that is whole; each damaged one that is newer is told of by a warning.

    Raises:
        CheckpointError: There is none, none is whole, or the newest one is of another version of Deep500.
    """
    place = Path(folder)
    found = checkpoint_folders(place)
    if not found:
        kind = "is no folder" if place.exists() and not place.is_dir() else "holds no checkpoint"
        kind = kind if place.exists() else "does not exist"
        raise CheckpointError(f"There is nothing to go on from: {shown_path(place)} {kind}.")
    for path in reversed(found):
        try:
            checkpoint = load_checkpoint(path)
        except _OtherVersionError:  # it is not damaged, and what comes after it would take its place
            raise
        except CheckpointError as error:
            _logger.warning("%s The one before it is used.", error)
            continue
        return checkpoint
    raise CheckpointError(
        f"There is nothing to go on from: each of the {len(found)} checkpoints in {shown_path(place)} is damaged."
    )


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
    if version != VERSION:
        kind = _OtherVersionError if is_whole else CheckpointError
        raise kind(f"it has version {shown(version)} of the format; accepted is {VERSION}")
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
