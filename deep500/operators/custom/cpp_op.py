"""An operator in C++ or CUDA that a class declares."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from deep500.core.errors import OperatorError
from deep500.operators.custom.native_op import NativeOp
from deep500.operators.native.library import NativeLibrary

__all__ = ["CppOp"]


class CppOp(NativeOp):
    """An operator in C++ or CUDA that a class declares; it is compiled when it is first used.

    Attributes:
        source: The C++ text, or the path of a file (relative to the file of the class), or several paths. It registers
            the operator by ``D500_OPERATOR(name, Struct)`` under the class' ``name``.
        dtypes: The dtypes that the class promises; checked against those that the source was compiled for.
        attributes: Default values of attributes, in addition to those of the source.
        definitions: Macros for the compiler, by name.
        flags: Further flags for the compiler.
        link_flags: Flags for the linker, such as ``-lfoo``.
        cuda: Compile a source that is a text by nvcc.

    A subclass may define :meth:`infer`. The values of attributes are given to the constructor.

    Example::

        class Scale(d5.CppOp):
            name = "scale"
            source = "scale.cpp"
            attributes = {"factor": 2.0}

        y = Scale(factor=3.0)(x)
    """

    source: ClassVar[str | Path | Sequence[str | Path]]
    dtypes: ClassVar[Sequence[str]] = ()
    definitions: ClassVar[Mapping[str, object]] = {}
    flags: ClassVar[Sequence[str]] = ()
    link_flags: ClassVar[Sequence[str]] = ()
    cuda: ClassVar[bool] = False
    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Take the default values of attributes out of the class, whose objects each have their own."""
        super().__init_subclass__(**keywords)
        if isinstance(vars(cls).get("attributes"), Mapping):
            cls._defaults = dict(vars(cls)["attributes"])
            del cls.attributes

    def __init__(self, **attributes: Any) -> None:
        """Take values of attributes; those with a default may be left out.

        Raises:
            OperatorError: The class has no source.
        """
        if not getattr(self, "source", None):
            raise OperatorError(
                f"{type(self).__name__} has no source; give the class the text or the path of C++ code."
            )
        self._given = {**self._defaults, **attributes}
        self._infer = None
        self._types = None

    def with_attributes(self, **values: Any) -> CppOp:
        """Return the operator with other values of some attributes."""
        return type(self)(**{**self._given, **values})

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of the outputs; see :meth:`CustomOp.infer`."""
        return super().infer(shapes, dtypes)

    @property
    def library(self) -> NativeLibrary:
        """The compiled operator; it is compiled now where that was not done before.

        Raises:
            CompileError: It does not compile.
            OperatorError: It lacks a dtype that the class promises.
        """
        kind = type(self)
        if "_compiled" not in vars(kind):
            kind._compiled = _compiled(kind)
        return kind._compiled

    _compiled: ClassVar[NativeLibrary]


def _compiled(kind: type[CppOp]) -> NativeLibrary:
    from deep500.operators.custom.compiling import compile_sources

    sources = kind.source if isinstance(kind.source, Sequence) and not isinstance(kind.source, str) else [kind.source]
    try:
        folder = Path(inspect.getfile(kind)).parent
    except (OSError, TypeError):  # a class that was typed in
        folder = Path()
    placed = [_placed(source, folder) for source in sources]
    library = compile_sources(
        vars(kind)["name"],
        placed,
        definitions=kind.definitions,
        flags=tuple(kind.flags),
        link_flags=tuple(kind.link_flags),
        cuda=kind.cuda,
    )
    missing = [dtype for dtype in kind.dtypes if dtype not in library.description.dtypes]
    if missing:
        raise OperatorError(
            f"{kind.__name__} promises the dtypes {', '.join(missing)}; its C++ code has only "
            f"{', '.join(library.description.dtypes)}. Add them to 'dtypes = deep500::dtypes<...>()' there."
        )
    return library


def _placed(source: str | Path, folder: Path) -> str | Path:
    """Return a text as it is, and a path from the folder of the class."""
    if isinstance(source, str) and "\n" in source:
        return textwrap.dedent(source)
    return folder / source
