"""PRE script of a node: code 2, by which the node is skipped, when the cell has a record that is finished.

It runs on the access point, beside the DAG, where Deep500 need not be installed.
"""

import json
import shutil
import sys
from pathlib import Path

cell = Path("..") / ".." / "cells" / sys.argv[1]
shutil.rmtree(cell / "left", ignore_errors=True)
try:
    finished = json.loads((cell / "record.json").read_text(encoding="utf-8"))["finished"] is True
except (OSError, ValueError, KeyError, TypeError):
    finished = False
sys.exit(2 if finished else 0)
