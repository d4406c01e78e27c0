"""POST script of a node: puts what the job brought back where it belongs, and notes how the job ended.

It runs on the access point, beside the DAG, where Deep500 need not be installed. Its code is always 0: a cell that
fails is an outcome, and no failure of the DAG, which goes on.
"""

import json
import os
import sys
from pathlib import Path


def main(cell_id: str, code: str, job: str) -> None:
    """Bring the files of one cell to its folder.

    Args:
        cell_id: The cell.
        code: DAGMan's ``$RETURN``: the job's exit code, the negative number of a signal, or below -1000 what kept it
            from running.
        job: DAGMan's ``$JOBID``.
    """
    cell = Path("..") / ".." / "cells" / cell_id
    faults = []
    for path in sorted((cell / "left").glob("*")):
        try:
            os.replace(path, cell / path.name)
        except OSError as error:
            faults.append(f"{path.name}: {error.strerror}")
    content = {"return": int(code), "job": job, "faults": faults}
    ends = Path("ends")
    ends.mkdir(exist_ok=True)
    partial = ends / f".{cell_id}.partial"
    partial.write_text(json.dumps(content), encoding="utf-8")
    os.replace(partial, ends / f"{cell_id}.json")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:4])
    except (OSError, ValueError, TypeError) as error:
        sys.stderr.write(f"{error}\n")
    sys.exit(0)
