"""This process: where it may run, with which priority, and what its libraries are told about threads."""

from __future__ import annotations

import functools
import resource

from deep500.measure.environment.control_groups import (
    cpu_quota,
    cpu_throttling,
    find_control_group,
    memory_limit_bytes,
)
from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError, cpu_list, format_cpus

__all__ = ["process"]

_POLICIES = {0: "other", 1: "fifo", 2: "round robin", 3: "batch", 5: "idle", 6: "deadline"}

#: Complete names only: a prefix such as TF_ would let secrets through (TF_VAR_... are Terraform's variables).
_THREAD_VARIABLES = """
    OMP_NUM_THREADS OMP_THREAD_LIMIT OMP_DYNAMIC OMP_NESTED OMP_MAX_ACTIVE_LEVELS OMP_SCHEDULE OMP_PROC_BIND OMP_PLACES
    OMP_WAIT_POLICY OMP_STACKSIZE OMP_CANCELLATION KMP_AFFINITY KMP_BLOCKTIME KMP_HW_SUBSET KMP_SETTINGS
    KMP_DUPLICATE_LIB_OK GOMP_CPU_AFFINITY GOMP_SPINCOUNT GOMP_STACKSIZE
    MKL_NUM_THREADS MKL_DOMAIN_NUM_THREADS MKL_DYNAMIC MKL_CBWR MKL_THREADING_LAYER MKL_INTERFACE_LAYER
    MKL_ENABLE_INSTRUCTIONS MKL_DEBUG_CPU_TYPE
    OPENBLAS_NUM_THREADS OPENBLAS_CORETYPE OPENBLAS_MAIN_FREE OPENBLAS_DEFAULT_NUM_THREADS GOTO_NUM_THREADS
    BLIS_NUM_THREADS VECLIB_MAXIMUM_THREADS NUMEXPR_NUM_THREADS NUMEXPR_MAX_THREADS TBB_NUM_THREADS
    TF_NUM_INTRAOP_THREADS TF_NUM_INTEROP_THREADS TF_ENABLE_ONEDNN_OPTS TF_DETERMINISTIC_OPS TF_CUDNN_DETERMINISTIC
    TF_CUDNN_USE_AUTOTUNE TF_XLA_FLAGS TF_CPP_MIN_LOG_LEVEL TF_FORCE_GPU_ALLOW_GROWTH TF_GPU_ALLOCATOR
    TF_GPU_THREAD_MODE TF_GPU_THREAD_COUNT TF_ENABLE_AUTO_MIXED_PRECISION TF_USE_LEGACY_KERAS XLA_FLAGS KERAS_BACKEND
    ONEDNN_MAX_CPU_ISA ONEDNN_DEFAULT_FPMATH_MODE ONEDNN_PRIMITIVE_CACHE_CAPACITY DNNL_MAX_CPU_ISA ATEN_CPU_CAPABILITY
    PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF NPY_DISABLE_CPU_FEATURES NPY_ENABLE_CPU_FEATURES
    CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_DEVICE_MAX_CONNECTIONS
    CUBLAS_WORKSPACE_CONFIG NVIDIA_TF32_OVERRIDE NVIDIA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
    MALLOC_ARENA_MAX MALLOC_CONF LD_PRELOAD
"""


def process(system: System) -> dict[str, Field]:
    """Tell on which CPUs and with how much of the machine this process may run."""
    status = functools.cache(lambda: system.read_table("/proc/self/status", ":"))
    allowed = functools.cache(lambda: cpu_list(_entry(status(), "Cpus_allowed_list")))
    return {
        "affinity": Field("string", "CPUs on which the process may run.", lambda: format_cpus(allowed())),
        "affinity_count": Field("integer", "Number of those CPUs.", lambda: len(allowed())),
        "nice": Field("integer", "Nice value.", lambda: _of_stat(system, 19)),
        "scheduling_policy": Field(
            "string", "Policy of the scheduler.", lambda: _POLICIES.get(_of_stat(system, 41), "unknown to Deep500")
        ),
        "threads": Field("integer", "Threads at this moment.", lambda: int(_entry(status(), "Threads"))),
        "thread_variables": Field(
            "object",
            "Variables that are set, of a list of known ones, that steer threads, devices and kernels.",
            lambda: system.variables(_THREAD_VARIABLES.split()),
        ),
        "control_group_version": Field(
            "integer", "Version of the control groups.", lambda: find_control_group(system, "cpu").version
        ),
        "cpu_quota": Field("number|null", "CPUs' time that may be used; null: no limit.", lambda: cpu_quota(system)),
        "cpu_throttled_s": Field("number", "How long the quota stopped the group.", lambda: cpu_throttling(system)[1]),
        "memory_limit_bytes": Field(
            "integer|null", "Memory that may be used; null: no limit.", lambda: memory_limit_bytes(system)
        ),
        "locked_memory_limit_bytes": Field(
            "integer|null", "Memory that may be locked; null: no limit.", lambda: _limit(resource.RLIMIT_MEMLOCK)
        ),
        "involuntary_context_switches": Field(
            "integer",
            "How often the process was interrupted since its start.",
            lambda: resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
        ),
    }


def _entry(status: dict[str, str], key: str) -> str:
    if not status.get(key):
        raise UnreadableError(f"/proc/self/status has no entry {key!r}")
    return status[key]


def _of_stat(system: System, number: int) -> int:
    """Return a field of ``/proc/self/stat`` by its number in proc(5); the second, the name, may hold anything."""
    fields = system.read("/proc/self/stat").rpartition(")")[2].split()
    if len(fields) <= number - 3:
        raise UnreadableError(f"/proc/self/stat has no field {number}")
    return int(fields[number - 3])


def _limit(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft
