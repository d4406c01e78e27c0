"""CuPy and its NCCL, loaded where the first communicator between GPUs is made."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import MissingDependencyError
from deep500.core.texts import one_line

__all__ = ["CuPy", "cupy_with_nccl"]


@dataclass(frozen=True)
class CuPy:
    """The modules.

    Attributes:
        cupy: CuPy itself.
        nccl: ``cupy.cuda.nccl``.
    """

    cupy: Any
    nccl: Any


@functools.cache
def cupy_with_nccl() -> CuPy:
    """Return CuPy and its NCCL.

    Raises:
        MissingDependencyError: CuPy, or the NCCL library that it looks for, is not installed.
    """
    how = "Install both with: pip install 'deep500[nccl]' (CUDA 13) or 'deep500[nccl12]' (CUDA 12)"
    try:
        import cupy
        from cupy.cuda import nccl
    except ImportError as error:
        raise MissingDependencyError(
            f"The communicator 'nccl' needs CuPy, which cannot be loaded ({one_line(str(error))}). {how}."
        ) from error
    if not nccl.available:
        raise MissingDependencyError(
            f"The communicator 'nccl' needs the NCCL library, which CuPy {cupy.__version__} does not find. {how}."
        )
    return CuPy(cupy, nccl)
