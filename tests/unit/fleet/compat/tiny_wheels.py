"""Frameworks of a few lines as wheels, so that environments are made without anything being downloaded."""

from __future__ import annotations

import base64
import hashlib
import textwrap
import zipfile
from pathlib import Path

__all__ = ["make_frameworks", "make_wheel"]

#: Appends a line to the file that FLEET_TEST_COUNT names, so that a test can count how often a cell ran.
COUNTS = """
import os
__version__ = {version!r}
if os.environ.get("FLEET_TEST_COUNT"):
    with open(os.environ["FLEET_TEST_COUNT"], "a") as file:
        file.write({name!r} + " " + __version__ + chr(10))
"""


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    source: str,
    requires: tuple[str, ...] = (),
    more: dict[str, str] | None = None,
) -> Path:
    """Write a wheel of one module, and more files where they are named."""
    source = COUNTS.format(name=name, version=version) + textwrap.dedent(source)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {line}\n" for line in requires),
        **(more or {}),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        path: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        for path, text in files.items()
    }
    record = "".join(f"{path},sha256={digests[path]},{len(files[path].encode())}\n" for path in files)
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    folder.mkdir(exist_ok=True, parents=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), text)  # so that equal wheels have one hash
    return wheel


def make_frameworks(folder: Path) -> None:
    """Write three frameworks in two versions each.

    ``fleetalpha`` works; ``fleetbeta`` cannot be imported in version 2 and never ends in version 1; version 2 of
    ``fleetgamma`` asks for what does not fit together, and version 1 dies.
    """
    for version in ("1.0", "2.0"):
        make_wheel(folder, "fleetalpha", version, "")
        make_wheel(folder, "fleetlow", version, "")
    make_wheel(folder, "fleetbeta", "1.0", "import time\ntime.sleep(600)\n")
    make_wheel(folder, "fleetbeta", "2.0", "raise ImportError('libfleet.so.2: cannot open shared object file')\n")
    make_wheel(folder, "fleetgamma", "1.0", "import signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    make_wheel(folder, "fleetgamma", "2.0", "", ("fleetlow<2", "fleetlow>=2"))
