from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import RecipeError
from deep500.recipe.loading import is_loading, load_recipe
from tests.unit.recipe.support import RECIPE, run_python, write_recipe


class HidingRecipes:
    """A finder that does not find the package of recipes, as where it is not installed."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return None if name.partition(".")[0] == "recipes" else self.finder.find_spec(name, path, target)


def refused(path: Path | str, message: str) -> str:
    with pytest.raises(RecipeError, match=message) as caught:
        load_recipe(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_file_is_read_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = write_recipe(tmp_path)
    (tmp_path / "helper_of_mine.py").write_text("HIDDEN = (7,)\n")
    path.write_text("from helper_of_mine import HIDDEN\n" + path.read_text().replace("hidden=(16,)", "hidden=HIDDEN"))
    before, bytecode = list(sys.path), sys.dont_write_bytecode

    recipe = load_recipe(path)

    assert (recipe.name, recipe.path) == ("mine", str(path))
    assert recipe["model_kwargs"] == {"hidden": (7,)}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["helper_of_mine.py", "mine.py"]
    assert (sys.path, sys.dont_write_bytecode, is_loading()) == (before, bytecode, False)
    assert "helper_of_mine" not in sys.modules


def test_changed_file_is_read_anew(tmp_path: Path) -> None:
    more = "'events': [], 'optimizer_args': (), 'train_sampler_kwargs': dict(transformations=[lambda batch: batch])"
    first = load_recipe(write_recipe(tmp_path, more=more)).configuration_hash

    again = load_recipe(write_recipe(tmp_path, more=more)).configuration_hash
    changed = load_recipe(write_recipe(tmp_path, more=more.replace("batch: batch", "b: b"))).configuration_hash

    assert first == again != changed


def test_file_with_a_syntax_error(tmp_path: Path) -> None:
    path = write_recipe(tmp_path, text="FIXED = {{\n'a': 1,,\n}}\n")

    assert refused(path, "SyntaxError").startswith(f"{path}:2: ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import deep500; deep500.NoSuchName", "AttributeError"),
        ("raise SystemExit(3)", "exits while it is read.*__main__"),
        ("import json; json.loads('{')", "JSONDecodeError"),
        ("run_recipe({}, {}, [])", "run_recipe was called while the recipe is read"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
    ],
)
def test_file_that_fails_names_its_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(f"from recipes.recipe import run_recipe\n\n{line}\n")

    assert refused(path, message).startswith(f"{path}:3: ")


@pytest.mark.parametrize("name", ["FIXED", "MUTABLE", "METRICS"])
def test_file_that_lacks_a_part(tmp_path: Path, name: str) -> None:
    path = write_recipe(tmp_path, text=RECIPE.replace(f"{name} =", "OTHER ="))

    refused(path, f"mine.py: defines no {name}; a recipe defines FIXED, MUTABLE and METRICS")


def test_file_whose_recipe_is_not_valid_is_named(tmp_path: Path) -> None:
    refused(write_recipe(tmp_path, epochs="'3'"), r"mine.py: FIXED\['epochs'\] is '3'")


def test_file_that_is_not_python(tmp_path: Path) -> None:
    path = tmp_path / "data.py"
    path.write_bytes(b"\x00\xff\xfe")

    assert refused(path, "SyntaxError|not a Python file").startswith(str(path))


def test_file_that_is_not_there() -> None:
    refused("no/such/file.py", "There is no recipe file 'no/such/file.py'.*digits_lenet")
    refused("digits_lennet", "Did you mean 'digits_lenet'")
    refused("x" * 5000, "There is no recipe file")


def test_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "is a folder")


def test_run_recipe_is_there_where_no_recipes_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "recipes"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [HidingRecipes(finder) for finder in sys.meta_path])

    recipe = load_recipe(write_recipe(tmp_path))

    assert recipe.name == "mine"
    assert not [name for name in sys.modules if name.partition(".")[0] == "recipes"]


def test_users_own_package_of_recipes_is_used(tmp_path: Path) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "common.py").write_text("HIDDEN = (5,)\n")
    path = write_recipe(folder)
    path.write_text("from recipes.common import HIDDEN\n" + path.read_text().replace("hidden=(16,)", "hidden=HIDDEN"))
    script = f"from deep500.recipe import load_recipe; print(load_recipe({str(path)!r})['model_kwargs'])"

    result = run_python("-c", script, cwd=tmp_path)

    assert result.stdout.strip() == "{'hidden': (5,)}", result.stderr


@pytest.mark.parametrize("text", ["x = " + "-" * 100000 + "1", "x = a" + ".b" * 200000], ids=["minus", "dots"])
def test_expression_that_python_cannot_read_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.py"
    path.write_text(text)

    refused(path, "deep.py: an expression is nested too deeply")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n", "3: E: no message"),
        ("def __getattr__(name): raise ValueError(name)\n", "1: ValueError: FIXED"),
        ("class B:\n    def __repr__(self): 1 / 0\nFIXED = {'epochs': B()}\nMUTABLE = METRICS = 3\n", "is a B;"),
    ],
    ids=["__str__", "__getattr__", "__repr__"],
)
def test_the_recipes_own_classes_may_fail_anywhere(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text)

    refused(path, line)


def test_recipe_that_reads_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "self.py"
    path.write_text("from deep500.recipe.loading import load_recipe\nload_recipe(__file__)\n")

    assert refused(path, "the recipe reads itself").count("self.py") == 2


def test_odd_path_is_quoted(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.py"
    path.write_text("1 / 0\n")

    refused(path, r"a\\nb.py':1: ZeroDivisionError")
