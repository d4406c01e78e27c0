from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.page import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOSTILE = "<script>alert('x')</script>&\"\x00"


def _figure() -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1))
    figure.add_subplot().plot([0, 1])
    return figure


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_everything_is_escaped_and_every_element_is_closed() -> None:
    report = InputReport()
    report.rows[HOSTILE] = 1
    report.add(ProblemKind.MALFORMED, HOSTILE, 1, [HOSTILE])
    page = Page(HOSTILE).heading(HOSTILE).paragraph(HOSTILE).table((HOSTILE,), [(HOSTILE,)]).picture(_figure, HOSTILE)
    text = page.input(report).text()
    tags = _Tags()
    tags.feed(text)

    assert not tags.open
    assert "script" not in tags.seen
    assert "<script>" not in text


def test_page_needs_no_network_and_statuses_have_their_colour() -> None:
    text = Page("p").table(("status",), [("failed",), ("else",)]).picture(_figure, "a line").text()

    assert '<td class="failed">failed</td>' in text
    assert "<td>else</td>" in text
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert 'alt="a line"' in text


def test_many_sources_are_summed_up() -> None:
    report = InputReport()
    for number in range(150):
        report.rows[f"file {number}"] = 2

    text = Page("p").input(report).text()
    assert "file 99" in text
    assert "file 100" not in text
    assert "and 50 more sources with 100 outcomes" in text


def test_same_page_has_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        Page("p").picture(_figure, "x").paragraph("half: \ud800").write(tmp_path / name)

    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_name_that_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"end with \.html"):
        Page("p").write(tmp_path / "p.pdf")
