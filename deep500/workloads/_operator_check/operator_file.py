"""The operators of a file: classes and objects of a Python file, or those that a C++ or CUDA file registers."""

from __future__ import annotations

import abc
import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deep500.core.errors import Deep500Error, OperatorError, near_miss
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown, shown_path
from deep500.operators.custom import CppOp, CustomOp, CustomPythonOp, NativeOp
from deep500.operators.custom.compiling import compile_sources
from deep500.operators.custom.findings import told
from deep500.workloads._operator_check.python_file import execute_file

__all__ = ["OperatorFile", "open_operator_file"]

#: Suffixes of the sources that are compiled as they are.
_SOURCES = (".cpp", ".cc", ".cxx", ".cu")

#: How a source registers an operator under a name of its own, and a class under the name that it is compiled for.
_REGISTERED = re.compile(r"\bD500_OPERATOR\s*\(\s*([A-Za-z_]\w*)\s*,")
_REGISTERED_CLASS = re.compile(r"\bD500_REGISTER_OP\s*\(")

#: What of a C++ source is no code.
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


class OperatorFile(abc.ABC):
    """A file with operators.

    Attributes:
        path: Where it is.
        names: Names of its operators, in their order in the file.
        note: What to know about all of them; empty for nothing.
    """

    path: Path
    names: tuple[str, ...]
    note: str = ""

    @abc.abstractmethod
    def attribute_names(self, name: str) -> list[str]:
        """Return the attributes whose values can be given to an operator.

        Raises:
            CompileError: It has to be compiled to know them, and cannot be.
        """

    @abc.abstractmethod
    def open(self, name: str, attributes: Mapping[str, Any]) -> CustomOp:
        """Return an operator.

        Args:
            name: Its name in the file.
            attributes: Values of its attributes; those with a default may be left out.

        Raises:
            CompileError: It does not compile.
            OperatorError: There is none of the name, or it does not take these attributes.
        """

    def check_name(self, name: str) -> str:
        """Return a name that is there.

        Raises:
            OperatorError: It is not.
        """
        if name not in self.names:
            raise OperatorError(
                f"{shown_path(self.path)} has no operator {name!r}.{near_miss(name, self.names)} It has: "
                f"{', '.join(self.names)}."
            )
        return name


def open_operator_file(path: str | Path, inputs: Sequence[TensorDescriptor] | None = None) -> OperatorFile:
    """Read a file that holds operators.

    Args:
        path: A Python file that defines them, or a C++ or CUDA file that registers some.
        inputs: What the inputs will be like, for sources that are compiled for one dtype.

    Raises:
        OperatorError: There is no such file, it cannot be read or executed, or it holds no operator.
        CompileError: A Python file compiles an operator while it is executed, which fails.
    """
    file = Path(path)
    if not file.is_file():
        beside = [str(p) for suffix in (".py", *_SOURCES) for p in file.parent.glob(f"*{suffix}")]
        what = "is a folder" if file.is_dir() else "does not exist"
        raise OperatorError(f"{shown_path(file)} {what}; accepted is a file.{near_miss(str(file), beside)}")
    if file.suffix == ".py":
        return _PythonFile(file)
    if file.suffix in _SOURCES:
        return _SourceFile(file, inputs)
    raise OperatorError(f"{shown_path(file)} holds no operators; accepted are .py, {', '.join(_SOURCES)}.")


class _PythonFile(OperatorFile):
    """A module that defines classes of operators, or makes objects of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        module = execute_file(path)
        named = {name: value for name, value in vars(module).items() if not name.startswith("_")}
        objects = {name: value for name, value in named.items() if isinstance(value, CustomOp)}
        kinds = {
            name: value
            for name, value in named.items()
            if isinstance(value, type) and value.__module__ == module.__name__ and _is_complete(value)
        }
        # A class of which the file makes objects is checked through these: they say with which attributes.
        made = {type(op) for op in objects.values()}
        self._found: dict[str, Any] = {
            name: value for name, value in named.items() if name in objects or (name in kinds and value not in made)
        }
        if not self._found:
            raise OperatorError(
                f"{shown_path(path)} has no operators; accepted are classes that derive from d5.CustomPythonOp or "
                f"d5.CppOp, and objects of them. Those that it imports from elsewhere do not count."
            )
        self.names = tuple(self._found)

    def attribute_names(self, name: str) -> list[str]:
        found = self._found[self.check_name(name)]
        if isinstance(found, NativeOp):
            return list(found.library.description.attributes)
        if isinstance(found, CustomOp):
            return list(found.attributes)
        parameters = list(inspect.signature(found).parameters.values())
        named = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        if issubclass(found, CppOp) and any(p.kind is p.VAR_KEYWORD for p in parameters):
            # The library says which there are; the constructor, which may ask for values, is not needed for it.
            named += [key for key in object.__new__(found).library.description.attributes if key not in named]
        return named

    def open(self, name: str, attributes: Mapping[str, Any]) -> CustomOp:
        found = self._found[self.check_name(name)]
        if isinstance(found, NativeOp):
            return found.with_attributes(**attributes) if attributes else found
        if isinstance(found, CustomOp):
            return _made(name, type(found), {**found.attributes, **attributes}) if attributes else found
        made = _made(name, found, attributes)
        return _complete(made, attributes) if isinstance(made, NativeOp) else made


class _SourceFile(OperatorFile):
    """A C++ or CUDA source by itself."""

    note = "all outputs are taken to be like the first input: a class in a Python file says otherwise, by its infer"

    def __init__(self, path: Path, inputs: Sequence[TensorDescriptor] | None) -> None:
        self.path = path
        self._dtype = inputs[0].dtype if inputs else "float32"
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise OperatorError(f"{shown_path(path)} cannot be read: {error.strerror or error}") from error
        code = _COMMENTS.sub(" ", text)
        names = _REGISTERED.findall(code)
        if not names and _REGISTERED_CLASS.search(code):
            names = [path.stem]
        if not names:
            raise OperatorError(
                f"{shown_path(path)} registers no operator; accepted is D500_OPERATOR(name, Struct) or "
                f"D500_REGISTER_OP(Class) in it."
            )
        self.names = tuple(dict.fromkeys(names))

    def attribute_names(self, name: str) -> list[str]:
        return list(self._library(name).description.attributes)

    def open(self, name: str, attributes: Mapping[str, Any]) -> CustomOp:
        library = self._library(name)
        lacking = library.description.attributes.keys() - library.description.defaults.keys() - attributes.keys()
        if lacking:
            raise OperatorError(_needs(name, sorted(lacking)))
        return NativeOp(library, attributes)

    def _library(self, name: str) -> Any:
        return compile_sources(self.check_name(name), [self.path], dtype=self._dtype)


def _is_complete(kind: type) -> bool:
    """Whether a class is an operator, and not only the base of some."""
    if not issubclass(kind, CustomOp) or inspect.isabstract(kind):
        return False
    if issubclass(kind, CppOp):
        return bool(getattr(kind, "source", None))
    return not issubclass(kind, CustomPythonOp) or kind.forward is not CustomPythonOp.forward


def _made(name: str, kind: type[CustomOp], attributes: Mapping[str, Any]) -> CustomOp:
    """Make an object of a class."""
    try:
        inspect.signature(kind).bind(**attributes)
    except TypeError as error:
        _explain(name, kind, attributes)
        raise OperatorError(f"{name} cannot be made of {', '.join(attributes) or 'nothing'}: {error}.") from error
    try:
        made = kind(**attributes)
        _ = made.attributes if not isinstance(made, CppOp) else None  # of these, the library says which there are
        return made
    except Deep500Error:
        raise
    except Exception as error:
        given = ", ".join(f"{key}={shown(value)}" for key, value in attributes.items())
        raise OperatorError(f"{name}({given}) cannot be made: {told(error)}") from error


def _explain(name: str, kind: type[CustomOp], attributes: Mapping[str, Any]) -> None:
    """Raise what is wrong with the names of attributes, if anything is."""
    everything = inspect.signature(kind).parameters.values()
    parameters = [p for p in everything if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    known = [p.name for p in parameters]
    unknown = [key for key in attributes if key not in known]
    if unknown:
        raise OperatorError(
            f"{name} has no attribute {unknown[0]!r}.{near_miss(unknown[0], known)} It has: "
            f"{', '.join(known) or 'none'}."
        )
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in attributes]
    described = [key for key in missing if key in ("input_descriptors", "output_descriptors")]
    if described:
        raise OperatorError(
            f"{name} needs {' and '.join(described)}, which only its file can give: make an object of it there, such "
            f"as op = {name}([d5.tensordesc('float32', 4, 3)], [d5.tensordesc('float32', 4, 3)])."
        )
    if missing:
        raise OperatorError(_needs(name, missing))


def _complete(op: NativeOp, attributes: Mapping[str, Any]) -> NativeOp:
    """Return an operator of which all attributes have values; it is compiled to know them."""
    said = op.library.description
    try:
        _ = op.attributes
    except OperatorError as error:
        lacking = sorted(said.attributes.keys() - said.defaults.keys() - attributes.keys())
        lacking = [key for key in lacking if repr(key) in str(error)]  # the others have a default in the class
        raise OperatorError(_needs(said.name, lacking)) if lacking else error from error
    return op


def _needs(name: str, missing: Sequence[str]) -> str:
    given = " ".join(f"--set {key}=VALUE" for key in missing)
    what = "a value" if len(missing) == 1 else "values"
    return f"{name} needs {what} for {', '.join(missing)}: give {given}, or a default in the file."
