"""Names that an operator's files, classes and C++ functions can all be called by."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path
from typing import Any

from deep500.core.errors import OperatorError
from deep500.core.texts import shown

__all__ = ["check_skeleton_name", "title_of"]

#: Words that C++17 and nvcc have for themselves, and Python has not.
_CPP_WORDS = frozenset([
    "alignas", "alignof", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "case", "catch", "char",
    "char16_t", "char32_t", "compl", "const", "constexpr", "const_cast", "decltype", "default", "delete", "do",
    "double", "dynamic_cast", "enum", "explicit", "export", "extern", "false", "float", "friend", "goto",
    "inline", "int", "long", "main", "mutable", "namespace", "new", "noexcept", "not_eq", "nullptr", "operator",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "short", "signed", "sizeof",
    "static", "static_assert", "static_cast", "std", "struct", "switch", "template", "this", "thread_local",
    "throw", "true", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "xor", "xor_eq",
])  # fmt: skip

#: Files that pytest or a project's tools read as something else.
_TAKEN_FILES = frozenset({"conftest", "setup", "noxfile"})


def title_of(name: str) -> str:
    """Return the name of the class of an operator.

    Example:
        >>> title_of("smooth_clip")
        'SmoothClip'
    """
    return "".join(part.capitalize() for part in name.split("_"))


def check_skeleton_name(name: Any, folder: Path) -> str:
    """Return the name of a new operator.

    Args:
        name: The name.
        folder: Where its files will lie; a module of the name that is imported from elsewhere would be hidden by them.

    Raises:
        OperatorError: It cannot be the name of files, Python's classes and C++ functions at once.
    """
    accepted = "Accepted are two or more small letters, digits and single '_', a letter in front, such as smooth_clip."
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) < 2:
        raise OperatorError(f"{shown(name)} cannot name a new operator.{_suggestion(name)} {accepted}")
    for language, words in (("Python", {*keyword.kwlist, *keyword.softkwlist}), ("C++", _CPP_WORDS)):
        if name in words or title_of(name) in words:
            raise OperatorError(f"{name!r} cannot name a new operator: it is a word of {language}. Choose another one.")
    if name in _TAKEN_FILES or name.startswith("test_"):
        raise OperatorError(
            f"{name!r} cannot name a new operator: a file {name}.py is read as something else, such as tests, by "
            f"Python's tools. Choose another one."
        )
    if _is_module_elsewhere(name, folder):
        raise OperatorError(
            f"{name!r} cannot name a new operator: there is a module of this name, which a file {name}.py would hide. "
            f"Choose another one."
        )
    return name


def _is_module_elsewhere(name: str, folder: Path) -> bool:
    """Whether a module of this name is imported from another place than the folder."""
    try:
        found = importlib.util.find_spec(name)
    except ValueError:  # it is loaded, and was not found in the usual way
        return True
    if found is None:
        return False
    return found.origin is None or Path(found.origin).resolve() != (folder / f"{name}.py").resolve()


def _suggestion(name: Any) -> str:
    """Return what was perhaps meant: words in small letters with a '_' between them."""
    if not isinstance(name, str):
        return ""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    tidy = re.sub(r"[^a-z0-9]+", "_", words).strip("_0123456789")
    return f" Did you mean {tidy!r}?" if len(tidy) > 1 and tidy != name else ""
