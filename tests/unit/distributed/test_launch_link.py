"""A rank's side of its launcher: whose place its output takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TAKES_OVER = """
import os, sys
from pathlib import Path
from deep500.distributed._launch_link import LauncherLink

link = LauncherLink(Path("."), 1, 2)
link._of_first = [os.open(name, os.O_WRONLY | os.O_CREAT) for name in ("out", "err")]
sys.stdout.write("before ")
for _ in range(2):
    link.take_over_streams()
    print("after")
    print("error", file=sys.stderr)
"""


def test_a_rank_writes_where_the_first_one_did(tmp_path: Path) -> None:
    """What it has written before stays where it was written to."""
    done = subprocess.run(
        [sys.executable, "-c", TAKES_OVER], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )

    assert (done.stdout, done.stderr) == ("before ", "")
    assert (tmp_path / "out").read_text() == "after\n" * 2
    assert (tmp_path / "err").read_text() == "error\n" * 2
