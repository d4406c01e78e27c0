"""Where the files of a checkpoint are, and what they are called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = [
    "FORMAT",
    "MANIFEST",
    "STATE",
    "TENSORS",
    "VERSION",
    "VERSION_OF_RANKS",
    "FileEntry",
    "folder_name",
    "parse_step",
    "rank_file",
    "step_folders",
]

#: What a manifest says that it is one: with the files of one process, or with those of several ranks.
FORMAT, VERSION, VERSION_OF_RANKS = "deep500-checkpoint", 1, 2

#: What a manifest says of a file: its SHA-256 and its size in bytes.
FileEntry = dict[str, Any]

TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"

_FOLDER = re.compile(r"step-(\d{9,})")


def folder_name(step: int) -> str:
    """Return the name of the folder of the checkpoint after a number of steps."""
    return f"step-{step:09d}"


def rank_file(name: str, rank: int, ranks: int) -> str:
    """Return the name of a rank's own file: ``state.json``, of several ranks ``state.rank-3.json``."""
    stem, _, ending = name.rpartition(".")
    return name if ranks == 1 else f"{stem}.rank-{rank}.{ending}"


def parse_step(name: Any) -> int | None:
    """Return the steps that a folder's name tells, ``None`` for a folder that is no checkpoint's."""
    found = _FOLDER.fullmatch(str(name))
    return int(found[1]) if found else None


def step_folders(folder: Path) -> list[tuple[int, Path]]:
    """Return steps and folder of every checkpoint in a folder, whole or not, the oldest first."""
    if not folder.is_dir():
        return []
    found = [(parse_step(path.name), path) for path in folder.iterdir()]
    return sorted((step, path) for step, path in found if step is not None and path.is_dir())
