"""Switches that decide whether two runs give the same numbers."""

from __future__ import annotations

import sys
from typing import Any

from deep500.measure.environment.loaded import loaded
from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System

__all__ = ["determinism"]

_VARIABLES = """
    PYTHONHASHSEED CUBLAS_WORKSPACE_CONFIG TF_DETERMINISTIC_OPS TF_CUDNN_DETERMINISTIC TF_CUDNN_USE_AUTOTUNE MKL_CBWR
    NVIDIA_TF32_OVERRIDE TF_ENABLE_ONEDNN_OPTS ONEDNN_DEFAULT_FPMATH_MODE CUDNN_DETERMINISTIC
"""


def determinism(system: System) -> dict[str, Field]:
    """Tell the switches of determinism and of reduced precision in loaded frameworks."""
    return {
        "variables": Field("object", "Variables that are set.", lambda: system.variables(_VARIABLES.split())),
        "hash_randomization": Field(
            "boolean", "Whether Python's hashes differ from run to run.", lambda: bool(sys.flags.hash_randomization)
        ),
        "torch": Field("object", "Switches of a loaded PyTorch.", _torch),
        "tensorflow": Field("object", "Switches of a loaded TensorFlow.", _tensorflow),
    }


def _torch() -> dict[str, Any]:
    torch = loaded("torch")
    return {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "mkldnn_enabled": torch.backends.mkldnn.enabled,
        "default_dtype": str(torch.get_default_dtype()),
    }


def _tensorflow() -> dict[str, Any]:
    tensorflow = loaded("tensorflow")
    internal = loaded("tensorflow.python.framework.config")  # the switch can be set, but not read, in public
    return {
        "op_determinism": internal.is_op_determinism_enabled(),
        "tensor_float_32": tensorflow.config.experimental.tensor_float_32_execution_enabled(),
    }
