from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import OperatorError
from deep500.operators.skeleton.names import check_skeleton_name, title_of


@pytest.mark.parametrize(("name", "title"), [("smooth_clip", "SmoothClip"), ("gelu2", "Gelu2"), ("a_b_c", "ABC")])
def test_names(tmp_path: Path, name: str, title: str) -> None:
    assert check_skeleton_name(name, tmp_path) == name
    assert title_of(name) == title


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "'' cannot name a new operator"),
        ("t", "two or more small letters"),
        ("2d", "two or more small letters"),
        ("SmoothClip", "Did you mean 'smooth_clip'"),
        ("smooth-clip", "Did you mean 'smooth_clip'"),
        ("smooth__clip", "Did you mean 'smooth_clip'"),
        ("_clip", "Did you mean 'clip'"),
        ("clip_", "Did you mean 'clip'"),
        ("glätten", "small letters"),
        ("a/b", "small letters"),
        ("clip\n", "small letters"),
        ("lambda", "a word of Python"),
        ("match", "a word of Python"),
        ("none", "a word of Python"),
        ("double", "a word of C++"),
        ("xor", "a word of C++"),
        ("std", "a word of C++"),
        ("conftest", "read as something else"),
        ("test_clip", "read as something else"),
        ("random", "a module of this name"),
        ("numpy", "a module of this name"),
        ("deep500", "a module of this name"),
        (3, "3 cannot name a new operator"),
        (None, "None cannot name"),
    ],
)
def test_names_that_are_refused(tmp_path: Path, name: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message) as caught:
        check_skeleton_name(name, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_module_that_is_the_file_itself_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "my_smooth_clip.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "here")

    assert check_skeleton_name("my_smooth_clip", tmp_path / "here") == "my_smooth_clip"
    with pytest.raises(OperatorError, match="a module of this name"):
        check_skeleton_name("my_smooth_clip", tmp_path)


def test_a_module_without_a_place_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("made_by_hand")
    module.__spec__ = None
    monkeypatch.setitem(sys.modules, "made_by_hand", module)

    with pytest.raises(OperatorError, match="a module of this name"):
        check_skeleton_name("made_by_hand", tmp_path)
