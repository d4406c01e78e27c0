"""From C++ or CUDA sources to an operator, with the functions of the published Deep500."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import OperatorError
from deep500.core.files import write_atomically
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown
from deep500.operators.custom._checks import check_name
from deep500.operators.custom.native_op import Infer, NativeOp
from deep500.operators.native._cache import cache_folder, digest, private_folder
from deep500.operators.native.build import compile_library
from deep500.operators.native.library import NativeLibrary

__all__ = ["compile_custom_cppop", "compile_custom_cppop_inline", "compile_sources"]

#: C++'s types by NumPy's names, for the macro ``DTYPE``.
_CPP_TYPES = {
    "float32": "float", "float64": "double", "float16": "deep500::float16", "bfloat16": "deep500::bfloat16",
    "bool": "bool", "complex64": "std::complex<float>", "complex128": "std::complex<double>",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip

_REGISTERS = re.compile(r"\bD500_(OPERATOR|REGISTER_OP)\s*\(")
_DTYPE = re.compile(r"\bDTYPE\b")
_OWN_DTYPE = re.compile(r"(typename|class|define|using)\s+DTYPE\b")

#: Flags by which the linker, not the first call, tells of functions that no source defines.
_COMPLETE = ["-Xlinker", "--no-undefined"] if sys.platform == "linux" else []


def compile_custom_cppop(
    operator_name: str,
    main_file: str | PathLike[str] | Sequence[str | PathLike[str]],
    input_tensors: Sequence[TensorDescriptor] | None = None,
    output_tensors: Sequence[TensorDescriptor] | None = None,
    other_files: Sequence[str | PathLike[str]] = (),
    live_output: bool = False,
    additional_cmake_options: Sequence[str] = (),
    additional_definitions: Mapping[str, object] | None = None,
    output_folder: str | PathLike[str] = "",
    *,
    attributes: Mapping[str, Any] | None = None,
    infer: Infer | None = None,
    flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
    cuda: bool = False,
    timeout_s: float = 900.0,
    keep: bool = False,
) -> NativeOp:
    """Compile C++ or CUDA files into an operator; the next time, the library is taken from the cache.

    Args:
        operator_name: Name of the operator: that of its ``D500_OPERATOR``, or of its class. A file that registers
            nothing is taken to define a class of this name, a template over the type of the elements perhaps.
        main_file: The file (``.cpp``, ``.cu``) with the operator; may be a list of all files.
        input_tensors: A descriptor for every input, with which a call's tensors are compared. A size may be a name, and
            the shape ``None`` for any. By default all tensors that the code takes are accepted.
        output_tensors: A descriptor for every output; its sizes may be names that the inputs have. By default, and
            where a shape is ``None``, outputs have the shape of the first input.
        other_files: Further files to compile.
        live_output: Log what the compiler says, as warnings.
        additional_cmake_options: Must be empty: the compiler is called directly, see ``flags``.
        additional_definitions: Macros by name. ``DTYPE``, where the source uses it, is by default the dtype of the
            first input tensor.
        output_folder: Folder for the library; by default the user's cache.
        attributes: Values of the operator's attributes.
        infer: What the outputs are like, ``infer(shapes, dtypes)``, instead of ``output_tensors``.
        flags: Further flags of the compiler.
        link_flags: Flags of the linker, such as ``-lfoo``.
        cuda: Compile files that do not end in ``.cu`` by nvcc, too.
        timeout_s: Seconds after which the compiler is stopped.
        keep: Leave the compiled objects beside the library.

    Raises:
        CompileError: It does not compile, or there is no compiler.
        OperatorError: The library does not hold the operator, or the attributes or descriptors do not fit it.
    """
    _refuse_cmake(operator_name, additional_cmake_options)
    files = [main_file] if isinstance(main_file, (str, PathLike)) else main_file
    library = compile_sources(
        operator_name,
        [Path(file) for file in [*files, *other_files]],
        definitions=additional_definitions,
        dtype=input_tensors[0].dtype if input_tensors else None,
        flags=flags, link_flags=link_flags, cuda=cuda, folder=output_folder or None,
        timeout_s=timeout_s, verbose=live_output, keep=keep,
    )  # fmt: skip
    return NativeOp(library, attributes, infer=infer, input_tensors=input_tensors, output_tensors=output_tensors)


def compile_custom_cppop_inline(
    operator_name: str,
    code: str,
    input_tensors: Sequence[TensorDescriptor] | None = None,
    output_tensors: Sequence[TensorDescriptor] | None = None,
    live_output: bool = False,
    is_cuda: bool = False,
    additional_cmake_options: Sequence[str] = (),
    additional_definitions: Mapping[str, object] | None = None,
    rendered_wrapper: str | None = None,
    output_folder: str | PathLike[str] = "",
    **options: Any,
) -> NativeOp:
    """Compile a text of C++ or CUDA into an operator; see :func:`compile_custom_cppop`.

    Args:
        operator_name: Name of the operator.
        code: The source.
        input_tensors: A descriptor for every input.
        output_tensors: A descriptor for every output.
        live_output: Log what the compiler says, as warnings, also where it succeeds.
        is_cuda: Compile by nvcc.
        additional_cmake_options: Of the published Deep500; nothing but an empty list is accepted.
        additional_definitions: Macros by name.
        rendered_wrapper: Of the published Deep500; nothing but ``None`` is accepted, no wrapper is needed.
        output_folder: Folder for the library; by default the user's cache.
        **options: Those of :func:`compile_custom_cppop` that are given by name.

    Raises:
        CompileError: It does not compile, or there is no compiler.
        OperatorError: The library does not hold the operator, or the attributes or descriptors do not fit it.
    """
    if rendered_wrapper is not None:
        raise OperatorError(
            f"{operator_name}: a rendered_wrapper was given; one source serves every framework, leave it out."
        )
    _refuse_cmake(operator_name, additional_cmake_options)
    file = _written(operator_name, code, ".cu" if is_cuda else ".cpp", output_folder or None)
    return compile_custom_cppop(
        operator_name,
        file,
        input_tensors,
        output_tensors,
        live_output=live_output,
        additional_definitions=additional_definitions,
        output_folder=output_folder,
        **options,
    )


def compile_sources(
    name: str,
    sources: Sequence[str | Path],
    *,
    definitions: Mapping[str, object] | None = None,
    dtype: str | None = None,
    link_flags: Sequence[str] = (),
    cuda: bool = False,
    folder: str | PathLike[str] | None = None,
    **options: Any,
) -> NativeLibrary:
    """Compile texts (``str``) and files (``Path``) into the library of an operator, and load it.

    Args:
        name: Name of the operator.
        sources: The sources.
        definitions: Macros by name.
        dtype: The dtype for the macro ``DTYPE`` where a source uses it and the definitions do not name it.
        link_flags: Flags of the linker.
        cuda: Compile by nvcc.
        folder: Folder for the library; by default the user's cache.
        **options: Further ones of :func:`~deep500.operators.native.build.compile_library`.

    Raises:
        CompileError: It does not compile, or there is no compiler.
        OperatorError: The library does not hold the operator.
    """
    check_name(name)
    suffix = ".cu" if cuda else ".cpp"
    paths = [_written(name, s, suffix, folder) if isinstance(s, str) else s.absolute() for s in sources]
    macros: dict[str, object] = {"D500_OPERATOR_NAME": name, **(definitions or {})}
    text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths if path.is_file())
    if dtype in _CPP_TYPES and _DTYPE.search(text) and not _OWN_DTYPE.search(text):
        macros.setdefault("DTYPE", _CPP_TYPES[dtype])
    headers: list[Path] = []
    if paths and not _REGISTERS.search(text):
        headers = [paths[0]]
        paths = [_registered(name, text, paths[0], dtype, macros, folder), *paths[1:]]
    path = compile_library(
        paths,
        name,
        headers=headers,
        definitions=macros,
        link_flags=[*link_flags, *_COMPLETE],
        cuda=cuda,
        folder=folder,
        **options,
    )
    return NativeLibrary(path, name)


def _registered(name: str, text: str, source: Path, dtype: str | None, macros: dict[str, object], folder: Any) -> Path:
    """Return a source that registers the class of another one, which does not do it itself."""
    template = re.search(rf"template\s*<[^;{{]*>\s*(?:class|struct)\s+{name}\b", text)
    if template and "DTYPE" not in macros:
        if dtype not in _CPP_TYPES:
            raise OperatorError(
                f"{name} is a template, and nothing says for which dtype it is to be compiled. Describe its inputs "
                f"(input_tensors), or define DTYPE (additional_definitions={{'DTYPE': 'float'}})."
            )
        macros["DTYPE"] = _CPP_TYPES[dtype]
    registered = f"{name}<DTYPE>" if template else name
    path = str(source).replace("\\", "\\\\").replace('"', '\\"')
    return _written(name, f'#include "{path}"\n\nD500_REGISTER_OP({registered})\n', source.suffix, folder)


def _written(name: str, text: str, suffix: str, folder: str | PathLike[str] | None) -> Path:
    """Return the path of a file that holds a text; the name stands for the text, so it is written once."""
    if not isinstance(text, str) or not text.strip():
        raise OperatorError(f"{name}: the source is {shown(text)}; accepted is a text of C++ or CUDA.")
    check_name(name)
    place = private_folder(cache_folder(folder) / f"source-{name}-{digest(text)[:20]}")
    path = place / f"{name}{suffix}"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text, "source of the operator")
    return path


def _refuse_cmake(name: str, options: Sequence[str]) -> None:
    if options:
        raise OperatorError(
            f"{name}: additional_cmake_options were given: {shown(options)}. Operators are compiled without CMake; "
            f"give flags of the compiler by flags=."
        )
