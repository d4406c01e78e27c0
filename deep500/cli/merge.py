"""``deep500 merge``: one result file of several."""

from __future__ import annotations

from typing import Annotated

import typer

from deep500.cli.exit_codes import PASSED
from deep500.core.texts import escaped, shown_path

__all__ = ["MERGE_EXAMPLES", "merge_command"]

MERGE_EXAMPLES = """\b
Examples:
  deep500 merge monday.json tuesday.json --output both.json
  deep500 merge pytorch.json tensorflow.json -o all.json && deep500 compare all.json

\b
Systems of the same label, configuration and environment become one, with the
launches of all files. Others stay separate, and what differs is among their
factors.

\b
Exit code:
  0 merged, 2 refused: the files are of different workloads or data, share
  process launches, or are no results
"""


def merge_command(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files that deep500 bench --output wrote.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write the result to this JSON file.")],
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Merge where the data of one system only is known.")
    ] = False,
) -> int:
    """Merge result files of one workload into one."""
    from deep500.core.files import check_separate, check_writable
    from deep500.measure.results.files import read_measurement, write_measurement
    from deep500.measure.results.merging import merge

    check_separate({"measurement": output}, files)
    check_writable(output, "measurement")
    merged = merge([read_measurement(file) for file in files], allow_unknown=allow_unknown)
    write_measurement(merged, output)
    for system in merged.systems:
        count = len(system.metrics[0].launches)
        print(f"{escaped(system.label)}: {count} launch{'es' if count != 1 else ''}")
    print(f"The result is in {shown_path(output)}")
    return PASSED
