from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import MissingDependencyError, PluginError, UnknownNameError
from deep500.core.registry import Registry

Plant = Callable[[dict[str, str]], Path]


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write files below a folder on the path, and forget what was imported from it afterwards."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    yield write
    for name in [name for name in sys.modules if name.startswith("planted")]:
        del sys.modules[name]


PACKAGE = {
    "planted/__init__.py": "",
    "planted/adam.py": "__all__ = ['Adam']\nclass Adam: ...\n",
    "planted/explosive.py": "raise RuntimeError('imported')\n",
    "planted/_shared.py": "raise RuntimeError('imported')\n",
    "planted/folder/__init__.py": "__all__ = ['value']\nvalue = 7\n",
    "planted/notes.txt": "",
}


def entry_points(group: str, lines: str) -> dict[str, str]:
    return {
        "other-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: other\nVersion: 1.0\n",
        "other-1.0.dist-info/entry_points.txt": f"[{group}]\n{lines}\n",
    }


def test_names_are_those_of_files_and_folders_and_import_none(plant: Plant) -> None:
    plant(PACKAGE)
    registry = Registry("optimizer", "planted")

    assert registry.names() == list(registry) == ["adam", "explosive", "folder"]
    assert "adam" in registry
    assert "_shared" not in registry
    assert 5 not in registry
    assert not {name for name in sys.modules if name.startswith("planted.")}


def test_getting_one_imports_that_one(plant: Plant) -> None:
    plant(PACKAGE)
    registry = Registry("optimizer", "planted")

    assert registry.get("adam").__name__ == "Adam"
    assert registry.get("adam") is registry.get("adam")
    assert registry.get("folder") == 7
    assert {name for name in sys.modules if name.startswith("planted.")} == {"planted.adam", "planted.folder"}
    with pytest.raises(RuntimeError, match="imported"):
        registry.get("explosive")


def test_whole_module(plant: Plant) -> None:
    plant(PACKAGE)

    assert Registry("optimizer", "planted", whole_module=True).get("adam").__name__ == "planted.adam"


@pytest.mark.parametrize("name", ["adan", "_shared", "notes", "", "adam.Adam", "__init__"])
def test_unknown_name(plant: Plant, name: str) -> None:
    plant(PACKAGE)

    with pytest.raises(UnknownNameError) as caught:
        Registry("optimizer", "planted").get(name)

    assert str(caught.value).startswith(f"There is no optimizer named {name!r}.")
    assert str(caught.value).endswith("Known: adam, explosive, folder.")
    assert ("Did you mean 'adam'?" in str(caught.value)) == (name in ("adan", "adam.Adam"))


@pytest.mark.parametrize(
    "text",
    ["x = 1\n", "__all__ = []\n", "__all__ = ['a', 'b']\na = b = 1\n", "__all__ = ['missing']\n"],
)
def test_file_must_name_one_object(plant: Plant, text: str) -> None:
    plant({"planted/__init__.py": "", "planted/wrong.py": text})

    with pytest.raises(PluginError, match=r"The model file planted.wrong must name exactly one object"):
        Registry("model", "planted").get("wrong")


@pytest.mark.parametrize("package", ["no_such_package", "no_such_package.inner", "json.decoder"])
def test_missing_package(package: str) -> None:
    with pytest.raises(PluginError, match=f"There is no package {package} to hold plug-ins of the kind 'model'"):
        Registry("model", package).names()


def test_entry_points_of_another_distribution(plant: Plant) -> None:
    plant(
        PACKAGE
        | entry_points("planted", "foreign = planted_other:Foreign\nadam = planted_other:Foreign")
        | {"planted_other.py": "class Foreign: ...\n"}
    )
    registry = Registry("optimizer", "planted")

    assert registry.names() == ["adam", "explosive", "folder", "foreign"]
    assert "planted_other" not in sys.modules
    assert registry.get("foreign").__name__ == "Foreign"
    assert registry.get("adam").__name__ == "Adam"  # nobody replaces a plug-in of the package
    assert Registry("optimizer", "planted", entry_point_group="elsewhere").names() == ["adam", "explosive", "folder"]


@pytest.mark.parametrize("target", ["planted_missing:Foreign", "planted_other:Missing", "planted_needy:Foreign"])
def test_entry_point_that_leads_nowhere(plant: Plant, target: str) -> None:
    plant(
        PACKAGE
        | entry_points("planted", f"foreign = {target}")
        | {"planted_other.py": "", "planted_needy.py": "import planted_missing\n"}
    )

    with pytest.raises(PluginError, match=f"The optimizer 'foreign' .* '{target}' cannot be loaded"):
        Registry("optimizer", "planted").get("foreign")


def test_entry_point_that_needs_a_library_says_so(plant: Plant) -> None:
    needy = "from deep500.core.errors import MissingDependencyError\nraise MissingDependencyError('install it')\n"
    plant(PACKAGE | entry_points("planted", "foreign = planted_needy:Foreign") | {"planted_needy.py": needy})

    with pytest.raises(MissingDependencyError, match="install it"):
        Registry("optimizer", "planted").get("foreign")


ADAPTERS = {
    **PACKAGE,
    "planted_frameworks/__init__.py": "",
    "planted_frameworks/a/__init__.py": "OPTIMIZER = 'of_a'\n",
    "planted_frameworks/a/optimizer.py": "__all__ = ['Own']\nclass Own: ...\n",
    "planted_frameworks/b/__init__.py": "",
    "planted_frameworks/c/__init__.py": """
from deep500.core.requirement import Requirement
OPTIMIZER = 'of_c'
REQUIREMENT = Requirement("planted_library", "planted", ("planted",))
""",
    "planted_frameworks/c/optimizer.py": "raise RuntimeError('imported')\n",
}


def test_adapters_bring_plugins_of_their_own(plant: Plant) -> None:
    plant(ADAPTERS)
    registry = Registry("optimizer", "planted", adapters="planted_frameworks")

    assert registry.names() == ["adam", "explosive", "folder", "of_a", "of_c"]
    assert "planted_frameworks.a.optimizer" not in sys.modules
    assert registry.get("of_a").__name__ == "Own"
    assert registry.get("adam").__name__ == "Adam"
    with pytest.raises(MissingDependencyError, match=r"The optimizer 'of_c' needs .*'deep500\[planted\]'"):
        registry.get("of_c")
    with pytest.raises(UnknownNameError, match="of_a, of_c"):
        registry.get("of_b")
