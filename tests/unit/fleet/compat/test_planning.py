from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.package_index import Offer
from deep500.fleet.compat.planning import expand, plan_campaign
from tests.unit.fleet.compat.support import FakeIndex, matrix_of, plan_of

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_every_combination_once_in_the_matrix_order(tmp_path: Path) -> None:
    planned = plan_of(tmp_path, "frameworks: {a: ['1.0', '2.0'], b: ['1.0']}\nranks: [1, 2]\npython: ['3.11', '3.12']")
    assert [(c.framework, c.version, c.python, c.ranks) for c in planned.cells] == [
        (framework, version, python, ranks)
        for framework, version in (("a", "1.0"), ("a", "2.0"), ("b", "1.0"))
        for python in ("3.11", "3.12")
        for ranks in (1, 2)
    ]
    assert len({c.cell_id for c in planned.cells}) == 12
    assert planned.cells[0].cell_id.startswith("a-1.0-python3.11-ranks1-")
    assert plan_of(tmp_path, "frameworks: {a: ['1.0']}").cells[0].python == HERE


def test_duplicates_are_dropped_with_that_reason(tmp_path: Path) -> None:
    planned = plan_of(tmp_path, "frameworks: {a: ['1.0', '1.0']}\nranks: [1, 1]")
    assert len(planned.cells) == 1
    assert [dropped.source for dropped in planned.dropped] == ["duplicate"] * 3


def test_newest_of_the_index_over_all_pythons(tmp_path: Path) -> None:
    index = FakeIndex({("a", "3.11"): Offer(("1.9", "1.10", "1.2")), ("a", "3.12"): Offer(("2.0", "1.10"))})
    matrix = matrix_of(tmp_path, "frameworks: {a: newest 2}\npython: ['3.11', '3.12']")
    cells = list(expand(matrix, index))  # type: ignore[arg-type]
    assert [(c.version, c.python) for c in cells] == [
        ("2.0", "3.11"),
        ("2.0", "3.12"),
        ("1.10", "3.11"),
        ("1.10", "3.12"),
    ]


def test_newest_needs_an_index(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"cannot be asked: it was not asked \(--offline\)"):
        plan_of(tmp_path, "frameworks: {a: newest 2}")


def test_a_recipe_needs_the_name_of_the_adapter(tmp_path: Path) -> None:
    unnamed = plan_of(tmp_path, "frameworks: {a: ['1.0']}\nrecipe: [null, digits_mlp]")
    assert [c.recipe for c in unnamed.cells] == [None]
    assert (unnamed.dropped[0].cell.recipe, unnamed.dropped[0].source) == ("digits_mlp", "matrix")
    assert "'adapter'" in unnamed.dropped[0].reason
    planned = plan_of(
        tmp_path, "frameworks: {a: {versions: ['1.0'], adapter: reference}}\nrecipe: digits_mlp\ndeep500: deep500==9.9"
    )
    assert planned.cells[0].adapter == "reference"
    assert planned.cells[0].requirements == ("a==1.0", "deep500==9.9")
    with pytest.raises(FleetError, match="no file beside it"):
        plan_of(tmp_path, "frameworks: {a: {versions: ['1.0'], adapter: reference}}\nrecipe: none.py")


def test_too_many_combinations(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="100,000"):
        plan_of(tmp_path, f"frameworks: {{a: {[str(n) for n in range(500)]}}}\nranks: {list(range(1, 300))}")


def test_a_folder_with_a_campaign_is_kept(tmp_path: Path) -> None:
    planned = plan_of(tmp_path, "name: november\nframeworks: {a: ['1.0']}\nranks: [1, 2]")
    planned.write()
    read = Campaign.read(tmp_path / "campaign")
    assert read == planned
    assert read.name.startswith("november-")
    with pytest.raises(FleetError, match="holds a campaign already"):
        plan_campaign(matrix_of(tmp_path, "frameworks: {a: ['1.0']}"), tmp_path / "campaign", offline=True)


def test_the_users_own_snippets_are_found(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="no file beside it"):
        plan_of(tmp_path, "frameworks: {a: {versions: ['1.0'], probe: mine.py}}")
    (tmp_path / "mine.py").write_text("")
    planned = plan_of(tmp_path, "frameworks: {a: {versions: ['1.0'], probe: mine.py}}")
    assert planned.cells[0].probe == str(tmp_path / "mine.py")
