"""The framework's own data parallel training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from deep500.core.errors import TrainingError
from deep500.distributed.communicator import Communicator
from deep500.distributed.scheme import Scheme, StepContext

__all__ = ["Native"]


@runtime_checkable
class DataParallelExecutor(Protocol):
    """An executor whose framework can average gradients by itself."""

    def data_parallel(self, communicator: Communicator) -> Callable[[Mapping[str, Any], str], dict[str, Any]]:
        """Connect the ranks, and return ``inference_and_backprop`` with gradients that are means over all ranks.

        Args:
            communicator: Whose ranks train together; the framework may use connections of its own.
        """


class Native(Scheme):
    r"""What the framework has for data parallel training, in the place of an exchange of ours: to compare with.

    The course is that of :class:`~deep500.distributed.schemes.allreduce.AllReduce`. Under PyTorch it is
    ``DistributedDataParallel`` over gloo or NCCL. The gradients stay where the framework has them, so the flat buffers
    are not filled, and what the framework sends the ledger does not count.

    Source: S. Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
    """

    def bind(self, context: StepContext) -> None:
        """Let the framework connect the ranks; see :meth:`Scheme.bind`.

        Raises:
            TrainingError: The executor's framework has no such thing here.
        """
        super().bind(context)
        executor: Any = context.executor
        if not isinstance(executor, DataParallelExecutor):
            raise TrainingError(
                f"The scheme 'native' was asked for with {type(executor).__name__}, which has no data parallel "
                f"training of its framework's own. Accepted are executors of PyTorch; use the scheme 'allreduce', "
                f"whose course is the same."
            )
        context.differentiate = executor.data_parallel(context.communicator)
