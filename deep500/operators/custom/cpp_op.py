"""An operator in C++ or CUDA that a class declares."""

from __future__ import annotations

import inspect
import logging
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from deep500.core.errors import CompileError, OperatorError
from deep500.core.texts import shown
from deep500.operators.custom.native_op import NativeOp
from deep500.operators.native.library import NativeLibrary

__all__ = ["CppOp"]

_LOGGER = logging.getLogger(__name__)

#: A text of C++, the path of a file, or several of these.
Source: TypeAlias = str | Path | Sequence[str | Path]


class CppOp(NativeOp):
    """An operator in C++ or CUDA that a class declares; it is compiled when it is first used.

    Attributes:
        source: The C++ text, or the path of a file (relative to the file of the class), or several paths. It registers
            the operator by ``D500_OPERATOR(name, Struct)`` under the class' ``name``.
        cuda_source: The same for nvcc, of an operator that runs on GPUs as well. It is compiled instead of ``source``
            where there are a GPU and nvcc, so it has the code for processors, too. See :meth:`compiled_for`.
        dtypes: The dtypes that the class promises; checked against those that the source was compiled for.
        attributes: Default values of attributes, in addition to those of the source.
        definitions: Macros for the compiler, by name.
        flags: Further flags for the compiler of ``source``.
        cuda_flags: Further flags for nvcc, when it compiles ``cuda_source``.
        link_flags: Flags for the linker, such as ``-lfoo``.
        cuda: Compile a source that is a text by nvcc.

    A subclass may define :meth:`infer`. The values of attributes are given to the constructor.

    Example::

        class Scale(d5.CppOp):
            name = "scale"
            source = "scale.cpp"
            cuda_source = "scale.cu"
            attributes = {"factor": 2.0}

        y = Scale(factor=3.0)(x)
    """

    source: ClassVar[Source]
    cuda_source: ClassVar[Source | None] = None
    dtypes: ClassVar[Sequence[str]] = ()
    definitions: ClassVar[Mapping[str, object]] = {}
    flags: ClassVar[Sequence[str]] = ()
    cuda_flags: ClassVar[Sequence[str]] = ()
    link_flags: ClassVar[Sequence[str]] = ()
    cuda: ClassVar[bool] = False
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _libraries: ClassVar[dict[str, NativeLibrary]]
    _device: str | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Take the default values of attributes out of the class, whose objects each have their own."""
        super().__init_subclass__(**keywords)
        cls._libraries = {}
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
        other = type(self)(**{**self._given, **values})
        return other if self._device is None else other.compiled_for(self._device)

    def compiled_for(self, device: str) -> CppOp:
        """Return the operator with the library for a device, whether there is one or not.

        Without it, the library for GPUs is taken where the class has a ``cuda_source`` and there are a GPU and nvcc.

        Args:
            device: ``"cpu"`` for ``source``, compiled by a C++ compiler; ``"cuda"`` for ``cuda_source``, compiled by
                nvcc, which runs on processors and GPUs.

        Raises:
            OperatorError: It is none of these, or the class has no ``cuda_source``.
        """
        if device not in ("cpu", "cuda"):
            raise OperatorError(
                f"{type(self).__name__}.compiled_for was given {shown(device)}; accepted are 'cpu' and 'cuda'."
            )
        if device == "cuda" and self.cuda_source is None:
            raise OperatorError(
                f"{type(self).__name__} has no cuda_source, so it cannot be compiled for CUDA; give the class the text "
                f"or the path of CUDA code."
            )
        other = type(self)(**self._given)
        other._device = device
        return other

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
        device = self._device or kind._chosen_device()
        if device not in kind._libraries:
            kind._libraries[device] = _compiled(kind, device)
        return kind._libraries[device]

    @classmethod
    def _chosen_device(cls) -> str:
        """Return the device to compile for where nobody says it."""
        from deep500.operators.native._compiler import find_compiler
        from deep500.operators.native.devices import cuda_device_count

        if cls.cuda_source is None or cuda_device_count() == 0:
            return "cpu"
        try:
            find_compiler(cuda=True)
        except CompileError as error:
            _LOGGER.info("%s is compiled for the processor only: %s", cls.__name__, error)
            return "cpu"
        return "cuda"


def _compiled(kind: type[CppOp], device: str) -> NativeLibrary:
    from deep500.operators.custom.compiling import compile_sources

    source = kind.cuda_source if device == "cuda" else kind.source
    assert source is not None
    sources = source if isinstance(source, Sequence) and not isinstance(source, str) else [source]
    try:
        folder = Path(inspect.getfile(kind)).parent
    except (OSError, TypeError):  # a class that was typed in
        folder = Path()
    placed = [_placed(source, folder) for source in sources]
    library = compile_sources(
        vars(kind)["name"],
        placed,
        definitions=kind.definitions,
        flags=tuple(kind.cuda_flags if device == "cuda" else kind.flags),
        link_flags=tuple(kind.link_flags),
        cuda=kind.cuda or device == "cuda",
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
