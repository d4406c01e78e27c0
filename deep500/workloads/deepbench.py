"""One of DeepBench's problems."""

from __future__ import annotations

from deep500.measure.workload import Workload, WorkloadSpec
from deep500.operators.problem_sets.deepbench import DeepBench
from deep500.workloads._problem import problem_workload

__all__ = ["deepbench"]


def deepbench(spec: WorkloadSpec) -> Workload:
    """A problem of DeepBench's training set, computed by the framework's own function on tensors on the device.

    The text is ``deepbench:OPERATOR,size=N[,option=value]...[@FRAMEWORK[:DEVICE]]``, with the operators ``gemm``,
    ``convolution`` and ``rnn``; ``deep500 bench deepbench --op OPERATOR --list`` shows the sizes.

    Options: ``size``, the number of the size, from 1; ``form``, ``native`` for a call of the function itself,
    ``wrapped`` for one through Deep500's operators (``custom_op`` of ``custom_op_from_native``); ``dtype``
    (``float32``); ``seed`` (0) of the values, which are from the standard normal distribution, the weights of recurrent
    layers divided by the square root of their width.

    A run is a forward pass. Both forms in one process have the same tensors in common. The score is the L2 error of the
    result relative to the NumPy reference's; of a large problem it is that of a part: some rows, or some images.

    Raises:
        Deep500Error: There is no such problem, framework or device, or the framework cannot compute it.
    """
    return problem_workload(spec, DeepBench())
