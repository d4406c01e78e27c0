"""Reading members of archives, which are never unpacked to disk."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path

__all__ = ["check_member_path", "read_tar_members", "read_zip_members"]


def check_member_path(archive: Path, name: str) -> PurePosixPath:
    """Return the path of a member, after a check that it stays inside.

    Raises:
        DatasetError: It is absolute or has a part ``..``. Nothing is written to disk, so this could do no harm here;
            but no published archive holds such a name, and other programs would follow it.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise DatasetError(
            f"{shown_path(archive)} holds {name!r}, which leads out of it: it is not what was published."
        )
    return path


def read_tar_members(archive: Path, wanted: Mapping[str, str], advice: str) -> dict[str, bytes]:
    """Return the contents of some members of a gzip-compressed tar archive.

    Args:
        archive: The archive's path.
        wanted: The name under which each member is returned, by its path in the archive.
        advice: What to do about a damaged archive, a sentence.

    Raises:
        DatasetError: The archive is truncated, damaged, lacks a member, or holds one that leads out of it or is no
            plain file.
    """
    contents: dict[str, bytes] = {}
    try:
        with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            for member in tar:
                name = wanted.get(check_member_path(archive, member.name).as_posix())
                if name is None:
                    continue
                file = tar.extractfile(member) if member.isreg() else None
                if file is None or name in contents:
                    kind = "twice" if name in contents else "as something else than a plain file"
                    raise DatasetError(f"{shown_path(archive)} holds {member.name!r} {kind}. {advice}")
                contents[name] = file.read()
            while stream.read(1 << 20):  # gzip checks its sum at the end, which tarfile does not read
                continue
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise DatasetError(f"{shown_path(archive)} cannot be read: {error}. {advice}") from error
    _check_complete(archive, wanted, contents, advice)
    return contents


def read_zip_members(archive: Path, wanted: Mapping[str, str], advice: str) -> dict[str, bytes]:
    """Return the contents of some members of a zip archive; see :func:`read_tar_members`."""
    contents: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(archive) as opened:
            for member in opened.infolist():
                name = wanted.get(check_member_path(archive, member.filename).as_posix())
                if name is not None and name not in contents:
                    contents[name] = opened.read(member)
    except (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError, OSError) as error:
        raise DatasetError(f"{shown_path(archive)} cannot be read: {error}. {advice}") from error
    _check_complete(archive, wanted, contents, advice)
    return contents


def _check_complete(archive: Path, wanted: Mapping[str, str], contents: Mapping[str, bytes], advice: str) -> None:
    missing = [name for name in wanted.values() if name not in contents]
    if missing:
        raise DatasetError(f"{shown_path(archive)} lacks {', '.join(missing)}. {advice}")
