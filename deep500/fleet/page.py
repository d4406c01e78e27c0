"""A page of HTML in one file: headings, paragraphs, tables and pictures, with everything escaped."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from deep500.core.errors import FleetError
from deep500.core.files import write_atomically
from deep500.core.texts import encodable, shown_path
from deep500.fleet.input_report import InputReport
from deep500.fleet.libraries import JINJA
from deep500.fleet.outcome import STATUSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Page", "check_page_path"]

#: So many of the files that were read are shown by name.
_SOURCES = 100


class Page:
    """What a person would rather look at: one file that any browser shows, without the network.

    Each method adds a part and returns the page.
    """

    def __init__(self, title: str) -> None:
        """Begin a page.

        Raises:
            MissingDependencyError: The library that writes pages is not installed.
        """
        JINJA.require("A page")
        self.title = title
        self._parts: list[dict[str, Any]] = []

    def heading(self, text: str) -> Page:
        """Add a heading."""
        return self._add(kind="heading", text=text)

    def paragraph(self, text: str) -> Page:
        """Add a paragraph."""
        return self._add(kind="paragraph", text=text)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Page:
        """Add a table; a cell that is a status has its colour."""
        cells = [[str(cell) for cell in row] for row in rows]
        return self._add(kind="table", header=list(header), rows=cells)

    def picture(self, make: Callable[[], Figure], text: str) -> Page:
        """Add a picture.

        Args:
            make: Makes the figure.
            text: What it shows; it stands below, and in its place where pictures are not seen.
        """
        from deep500.measure.rendering import rendered

        encoded = base64.b64encode(rendered(make, ".svg")).decode("ascii")
        return self._add(kind="picture", text=text, source=f"data:image/svg+xml;base64,{encoded}")

    def input(self, report: InputReport) -> Page:
        """Add what was read, and what was wrong with it."""
        said = report.to_dict()
        self.heading("What was read")
        rows = [(s["source"], s["format"], f"{s['outcomes']:,}") for s in said["sources"]]
        self.table(("source", "format", "outcomes"), rows[:_SOURCES])
        if len(rows) > _SOURCES:
            more = sum(s["outcomes"] for s in said["sources"][_SOURCES:])
            self.paragraph(f"... and {len(rows) - _SOURCES:,} more sources with {more:,} outcomes.")
        if said["problems"]:
            problems = [
                (p["kind"], p["source"], p["count"], p["effect"], "; ".join(p["examples"])) for p in said["problems"]
            ]
            self.table(("problem", "source", "count", "what was done", "examples"), problems)
        return self

    def text(self) -> str:
        """Return the page as HTML."""
        import jinja2

        environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
        template = environment.from_string(
            resources.files("deep500.fleet").joinpath("page.html.jinja").read_text("utf-8")
        )
        text = template.render(title=self.title, parts=self._parts, statuses=STATUSES)
        return encodable(text, "utf-8")

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page.

        Raises:
            FleetError: The name does not end with ``.html``.
            FileWriteError: The file cannot be written.
        """
        check_page_path(path)
        write_atomically(path, self.text(), "page")

    def _add(self, **part: Any) -> Page:
        self._parts.append(part)
        return self


def check_page_path(path: str | PathLike[str]) -> None:
    """Check that a page can have this name.

    Raises:
        FleetError: It does not end with ``.html``.
    """
    if PurePath(path).suffix.lower() not in (".html", ".htm"):
        raise FleetError(f"A page cannot be written to {shown_path(path)}: accepted are names that end with .html.")
