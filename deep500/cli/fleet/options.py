"""Options and output that the verbs of ``deep500 fleet`` share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_table
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.fleet.input_report import InputReport

__all__ = [
    "AsJson",
    "Format",
    "OutcomePaths",
    "PageFile",
    "PictureFile",
    "Quiet",
    "check_outputs",
    "print_document",
    "print_input",
    "print_written",
]

OutcomePaths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Files or folders with outcomes; see deep500 fleet read --help.")
]
Format = Annotated[
    str | None, typer.Option(metavar="NAME", help="The format of all files; by default each file's own is told.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write the result as JSON on the standard output.")]
PageFile = Annotated[str | None, typer.Option("--page", metavar="FILE", help="Write a page of it: an .html file.")]
PictureFile = Annotated[str | None, typer.Option("--picture", metavar="FILE", help="Draw it: a .png or .svg file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def check_outputs(inputs: list[str], **outputs: str | None) -> None:
    """Check before the work that what is asked for can be written; a page and a picture have names that tell.

    Args:
        inputs: Files that are read, which no output may replace.
        **outputs: Each file by what it is: ``page``, ``picture`` or something else, ``None`` for what is not wanted.

    Raises:
        Deep500Error: A name is not accepted, or its folder cannot be written to.
    """
    from deep500.core.errors import FleetError
    from deep500.core.files import check_separate, check_writable
    from deep500.fleet.page import check_page_path
    from deep500.measure.rendering import picture_format

    named = {what.replace("_", " "): path for what, path in outputs.items() if path is not None}
    check_separate(dict(named), inputs)
    for what, path in named.items():
        if what == "page":
            check_page_path(path)
        if what == "picture":
            picture_format(path, FleetError)
        check_writable(path, what)


def print_document(document: Mapping[str, Any], as_json: bool, show: Callable[[], None]) -> None:
    """Write a result: as JSON where that is wanted (numbers that are none become null), else as ``show`` does."""
    if as_json:
        print(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        show()


def print_input(report: InputReport) -> None:
    """Write how much was read, and a line for each kind of fault in each source."""
    said = report.to_dict()
    count = len(said["sources"])
    print(f"{said['outcomes']:,} outcomes of {count} {'source' if count == 1 else 'sources'}")
    if said["problems"]:
        print("\nFaults of the input:")
        print_table(
            [
                ("problem", "count", "what was done", "source", "examples"),
                *(
                    (p["kind"], f"{p['count']:,}", p["effect"], shown_path(p["source"]), "; ".join(p["examples"]))
                    for p in said["problems"]
                ),
            ]
        )
    print()


def print_written(as_json: bool, **outputs: str | None) -> None:
    """Say where each file is that was written; nothing beside JSON."""
    for what, path in outputs.items():
        if path is not None and not as_json:
            print(f"The {what.replace('_', ' ')} is in {shown_path(path)}")


def _plain(value: Any) -> Any:
    """Return a value with numbers that JSON does not have as nothing."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):  # a scalar of NumPy
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
