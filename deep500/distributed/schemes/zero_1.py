"""Sharded optimizer state."""

from __future__ import annotations

from deep500.core.errors import TrainingError
from deep500.distributed.flat_buffers import FlatBuffer
from deep500.distributed.scheme import Scheme, StepContext

__all__ = ["Zero1"]


class Zero1(Scheme):
    r"""Stage 1 of ZeRO: each rank has the optimizer's state of its part of the parameters, updates them and sends them.

    The parameters of a flat buffer are cut at tensors into p parts of about equal size. Part i of the gradients is
    averaged at rank i; after the update part i of the parameters goes from there to all. The course is that of
    :class:`~deep500.distributed.schemes.allreduce.AllReduce`, the volume too, and the state takes a p-th of the memory.

    A base optimizer with ``clip_norm`` or ``ema_decay``, which look at all parameters, is refused.

    Source: S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC20,
    section 5.1.
    """

    def bind(self, context: StepContext) -> None:
        """Find out which parameters this rank updates; see :meth:`Scheme.bind`."""
        super().bind(context)
        owned = [owned_names(buffer, context.communicator.size) for buffer in context.gradients]
        context.updated_names = frozenset(name for parts in owned for name in parts[context.communicator.rank])

    def before_backward(self, context: StepContext) -> None:
        """Check that the base optimizer can do with a part of the parameters.

        Raises:
            TrainingError: It cannot.
        """
        for option in ("clip_norm", "ema_decay"):
            if getattr(context.base_optimizer, option) is not None:
                raise TrainingError(
                    f"{option} of {type(context.base_optimizer).__name__} looks at all parameters, but with Zero1 a "
                    f"rank updates a part of them. Leave it out, or use the scheme 'allreduce'."
                )

    def after_backward(self, context: StepContext) -> None:
        """Average each part at the rank that updates it."""
        for buffer in context.gradients:
            for rank, part in enumerate(parts_of(buffer, context.communicator.size)):
                context.communicator.reduce(buffer.array[part], rank, "mean")

    def after_update(self, context: StepContext) -> None:
        """Give each part to all ranks."""
        for buffer in context.fetch_parameters():
            for rank, part in enumerate(parts_of(buffer, context.communicator.size)):
                context.communicator.broadcast(buffer.array[part], rank)
        context.feed_parameters()


def owned_names(buffer: FlatBuffer, size: int) -> list[list[str]]:
    """Return the parameters that each of a number of ranks updates: those whose middle lies in its share."""
    names: list[list[str]] = [[] for _ in range(size)]
    for name, start in buffer.starts.items():
        middle = start + buffer.views[name].size / 2
        names[min(int(middle * size / max(buffer.array.size, 1)), size - 1)].append(name)
    return names


def parts_of(buffer: FlatBuffer, size: int) -> list[slice]:
    """Return the part of a flat buffer that each of a number of ranks updates."""
    parts, start = [], 0
    for names in owned_names(buffer, size):
        stop = start + sum(buffer.views[name].size for name in names)
        parts.append(slice(start, stop))
        start = stop
    return parts
