"""``deep500 export``: a result file in the format of another tool."""

from __future__ import annotations

from typing import Annotated

import typer

from deep500.cli.exit_codes import PASSED
from deep500.core.texts import shown_path

__all__ = ["EXPORT_EXAMPLES", "export_command"]

EXPORT_EXAMPLES = """\b
Formats:
  pyperf            JSON for pyperf show, stats, hist and compare_to
  google_benchmark  JSON for Google Benchmark's tools/compare.py
  mllog             :::MLLOG lines of MLPerf

\b
Examples:
  deep500 export result.json --to pyperf --output result.pyperf.json
  deep500 export result.json --to mllog | grep tracked_stats

\b
Exit code:
  0 exported, 2 refused: the format cannot hold it, or the file is no result
"""


def export_command(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="A file that deep500 bench --output wrote.")],
    form: Annotated[str, typer.Option("--to", metavar="FORMAT", help="The format; see below.")],
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write to this file; by default to the standard output.")
    ] = None,
) -> int:
    """Export a result file to the format of another tool."""
    from deep500.core.files import check_separate
    from deep500.measure.export import export, exported
    from deep500.measure.results.files import read_measurement

    check_separate({"export": output}, [result])
    measurement = read_measurement(result)
    if output is None:
        print(exported(measurement, form), end="")
        return PASSED
    export(measurement, form, output)
    print(f"The export is in {shown_path(output)}")
    return PASSED
