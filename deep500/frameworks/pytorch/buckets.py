"""Gradients in flat buffers, handed out bucket by bucket while autograd still runs."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from deep500.core.errors import TrainingError
from deep500.frameworks.pytorch._arrays import to_tensor
from deep500.networks.operator_node import OperatorNode
from deep500.networks.program import Program

if TYPE_CHECKING:
    from deep500.distributed.flat_buffers import Bucket, FlatBuffers

__all__ = ["BucketFiller", "parameters_of_loss"]


class _Stopped(BaseException):
    """Ends backward where ``on_bucket`` failed; what it raised is kept, and raised as it is where autograd has ended.

    It is no ``Exception``, so that nobody between takes it for an error of PyTorch's.
    """


class BucketFiller:
    """Brings the gradients by an executor's parameters into flat buffers.

    A hook a parameter, registered once, tells when autograd has summed up its gradient. When all of a bucket are there,
    they move into the bucket, which becomes the memory of the parameters' ``grad``. Outside of :meth:`run` the hooks do
    nothing.
    """

    def __init__(self, parameters: Mapping[str, torch.Tensor]) -> None:
        """Register the hooks.

        Args:
            parameters: The trained parameters by name, all on one device.
        """
        self._parameters = dict(parameters)
        self._plan: _Plan | None = None
        self._run: _Run | None = None
        own = weakref.ref(self)  # a parameter must not keep alive what holds it
        for name, parameter in self._parameters.items():
            parameter.register_post_accumulate_grad_hook(_hook(own, name))

    def run(
        self,
        gradients: FlatBuffers,
        buckets: Sequence[Bucket],
        on_bucket: Callable[[Bucket], None],
        differentiate: Callable[[], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return what ``differentiate`` returns, the buckets being handed out meanwhile.

        Args:
            gradients: Where the gradients go.
            buckets: All buckets, in the order in which they are handed out.
            on_bucket: Called for each. What it raises is raised here, and no gradients are left then.
            differentiate: Lets the gradients be forgotten, runs the network, and calls :meth:`begin`, ``backward`` and
                :meth:`end`.
        """
        plan = self._plan
        if plan is None or not plan.is_of(gradients, buckets):
            plan = self._plan = _new_plan(self._parameters, gradients, buckets)
        run = self._run = _Run(plan, on_bucket)
        outputs: dict[str, Any] = {}
        is_done = False
        try:
            outputs = differentiate()
            is_done = True
        except _Stopped:
            pass
        finally:
            self._run = None
            if not is_done:
                for parameter in self._parameters.values():
                    parameter.grad = None
        if run.failure is not None:
            raise run.failure
        return outputs

    def begin(self, program: Program, loss: str) -> None:
        """Get ready for backward; outside of :meth:`run` there is nothing to do."""
        if self._run is not None:
            self._run.begin(program, loss)

    def end(self) -> None:
        """Hand out what is left after backward; outside of :meth:`run` there is nothing to do."""
        if self._run is not None:
            self._run.end()

    def arrived(self, name: str) -> None:
        """Note that the gradient by a parameter is there."""
        if self._run is not None:
            self._run.arrived(name)

    def take_exchanged(self, gradients: FlatBuffers) -> None:
        """Take over what the exchange left in the buffers of the last run, where that is not their own memory."""
        if self._plan is not None and self._plan.gradients is gradients:
            self._plan.take_exchanged()


class _Plan:
    """Where the gradients go that autograd makes on the processor: the parts of the flat buffers themselves.

    Attributes:
        gradients: The flat buffers.
        buckets: The buckets.
        bucket_of: Number of the bucket of each parameter.
        ignored: Parameters that the loss of the last run ignored, but those of other ranks perhaps did not.
    """

    def __init__(
        self, parameters: Mapping[str, torch.Tensor], gradients: FlatBuffers, buckets: Sequence[Bucket]
    ) -> None:
        self.gradients, self.buckets = gradients, buckets
        self.bucket_of = {name: number for number, bucket in enumerate(buckets) for name in bucket.names}
        self.ignored: list[str] = []
        self._parameters = parameters
        self._members = [[parameters[name] for name in bucket.names] for bucket in buckets]
        self._views = [[self._view(name) for name in bucket.names] for bucket in buckets]
        self._expected: dict[tuple[Program, str], tuple[list[int], list[str]]] = {}

    def is_of(self, gradients: FlatBuffers, buckets: Sequence[Bucket]) -> bool:
        """Whether these buffers and buckets are filled."""
        return self.gradients is gradients and self.buckets is buckets

    def expected(self, program: Program, loss: str) -> tuple[list[int], list[str]]:
        """Return how many gradients each bucket waits for, and the parameters that may come to be ignored."""
        found = self._expected.get((program, loss))
        if found is None:
            reached, depending = parameters_of_loss(program, loss)
            counts = [sum(name in reached for name in bucket.names) for bucket in self.buckets]
            found = self._expected[program, loss] = counts, sorted(depending)
        return found

    def fill(self, number: int) -> None:
        """Move the gradients of a bucket into it: copied, which takes less than to clear it and to add to it."""
        members, views = self._members[number], self._views[number]
        made = [parameter.grad for parameter in members]
        here = [view for view, gradient in zip(views, made) if gradient is not None]
        if here:
            torch._foreach_copy_(here, [gradient for gradient in made if gradient is not None])
        for parameter, view, gradient in zip(members, views, made):
            if gradient is None:
                view.zero_()
            else:
                parameter.grad = view

    def is_there(self, number: int, *, wait: bool) -> bool:
        """Whether a bucket that was filled can be read by the processor."""
        return True

    def take_exchanged(self) -> None:
        """Update parameters that are ignored here as other ranks do, whose branch of the network may have them."""
        for name in self.ignored:
            self._parameters[name].grad = self._view(name)

    def _view(self, name: str) -> torch.Tensor:
        return to_tensor(self.gradients[name])


class _DevicePlan(_Plan):
    """The same for a GPU: gradients gather in flat buffers there, each bucket is copied to the host and the mean back.

    Not run on such hardware. It follows the rules that PyTorch states for CUDA streams: a hook runs on the stream of
    its parameter's backward, copies are queued behind it, and an event tells when the host may read.
    """

    def __init__(
        self, parameters: Mapping[str, torch.Tensor], gradients: FlatBuffers, buckets: Sequence[Bucket]
    ) -> None:
        device = next(iter(parameters.values())).device
        self._hosts = {buffer.dtype: to_tensor(buffer.array) for buffer in gradients}
        self._flat = {dtype: torch.zeros_like(host, device=device) for dtype, host in self._hosts.items()}
        self._placed = {
            name: self._flat[buffer.dtype][start : start + buffer.views[name].size].view(buffer.views[name].shape)
            for buffer in gradients
            for name, start in buffer.starts.items()
        }
        self._events = [torch.cuda.Event() for _ in buckets]
        super().__init__(parameters, gradients, buckets)
        for host in self._hosts.values():
            _lock_pages(host)

    def fill(self, number: int) -> None:
        """Gather the gradients of a bucket on the GPU, and begin to copy them to the host."""
        super().fill(number)
        bucket = self.buckets[number]
        part = slice(bucket.start, bucket.start + bucket.array.size)
        self._hosts[bucket.dtype][part].copy_(self._flat[bucket.dtype][part], non_blocking=True)
        self._events[number].record()

    def is_there(self, number: int, *, wait: bool) -> bool:
        """Whether a bucket has come to the host."""
        if wait:
            self._events[number].synchronize()
        return bool(self._events[number].query())

    def take_exchanged(self) -> None:
        """Copy the buffers to the GPU."""
        super().take_exchanged()
        for dtype, host in self._hosts.items():
            self._flat[dtype].copy_(host, non_blocking=True)

    def _view(self, name: str) -> torch.Tensor:
        return self._placed[name]


class _Run:
    """One pass of backward.

    Attributes:
        failure: What ``on_bucket`` raised.
    """

    def __init__(self, plan: _Plan, on_bucket: Callable[[Bucket], None]) -> None:
        self.failure: BaseException | None = None
        self._plan = plan
        self._on_bucket = on_bucket
        self._left: list[int] = []
        self._depending: list[str] = []
        self._next = 0
        self._filled: deque[int] = deque()

    def begin(self, program: Program, loss: str) -> None:
        """Count what is to come."""
        counts, self._depending = self._plan.expected(program, loss)
        self._left = counts.copy()

    def arrived(self, name: str) -> None:
        """Count a gradient, and hand out what is complete: in the order of the list, which is that of every rank."""
        number = self._plan.bucket_of[name]
        self._left[number] -= 1
        if not self._left[number]:
            self._guarded(lambda: self._advance(wait=False))
        elif self._left[number] < 0:
            self._guarded(lambda: _refuse_more(name))

    def end(self) -> None:
        """Hand out the rest; what has not come by now is a gradient of zero."""
        self._guarded(self._rest)

    def _rest(self) -> None:
        self._left = [0] * len(self._left)
        self._advance(wait=True)
        parameters = self._plan._parameters
        self._plan.ignored = [name for name in self._depending if parameters[name].grad is None]

    def _advance(self, *, wait: bool) -> None:
        plan = self._plan
        while self._next < len(plan.buckets) and not self._left[self._next]:
            plan.fill(self._next)
            self._filled.append(self._next)
            self._next += 1
        while self._filled and plan.is_there(self._filled[0], wait=wait):
            self._on_bucket(plan.buckets[self._filled.popleft()])

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001, RUF100 - it is raised again when autograd has ended
            self.failure = error
            raise _Stopped from None


def parameters_of_loss(program: Program, loss: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the parameters that a loss is computed from, and those of them that one run may ignore, and another not.

    The latter are read by a branch or the body of a loop, or so is what is computed from them.
    """
    producers = {output: node for node in program.nodes for output in node.outputs if output}
    reached = _sources([loss], producers)
    holders = [producers[name] for name in reached if name in producers and producers[name].graphs]
    depending = _sources([name for node in holders for name in (*node.inputs, *node.captured)], producers)
    parameters = frozenset(program.parameters)
    return parameters & reached, parameters & depending


def _sources(names: Iterable[str], producers: Mapping[str, OperatorNode]) -> set[str]:
    """Return all that some values are computed from, and they themselves."""
    pending, seen = list(names), {""}
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            if name in producers:
                pending.extend((*producers[name].inputs, *producers[name].captured))
    return seen


def _new_plan(parameters: Mapping[str, torch.Tensor], gradients: FlatBuffers, buckets: Sequence[Bucket]) -> _Plan:
    """Return the plan for the parameters' device.

    Raises:
        TrainingError: The buffers have other tensors than the parameters.
    """
    listed = [name for bucket in buckets for name in bucket.names]
    if sorted(listed) != sorted(parameters) or sorted(gradients.names) != sorted(parameters):
        raise TrainingError(
            f"Received buckets of the tensors {_some(listed)}, in buffers of {_some(gradients.names)}. Accepted is "
            f"each parameter of the network once: {_some(parameters)}. Make the buffers of the network's parameters, "
            f"and pass all of their buckets."
        )
    on_processor = all(parameter.device.type == "cpu" for parameter in parameters.values())
    return (_Plan if on_processor else _DevicePlan)(parameters, gradients, buckets)


def _some(names: Iterable[str]) -> str:
    return f"{', '.join(names):.200}" or "none"


def _hook(reference: weakref.ref[BucketFiller], name: str) -> Callable[[torch.Tensor], None]:
    def arrived(parameter: torch.Tensor) -> None:
        filler = reference()
        if filler is not None:
            filler.arrived(name)

    return arrived


def _refuse_more(name: str) -> None:
    raise TrainingError(
        f"Autograd added to the gradient by {name!r} after it had said that it was complete, as it does where backward "
        f"is called within backward. Accepted are networks that are differentiated in one pass."
    )


def _lock_pages(host: torch.Tensor) -> None:
    """Have memory that a GPU copies from without waiting; where that is refused, copies wait."""
    torch.cuda.cudart().cudaHostRegister(host.data_ptr(), host.numel() * host.element_size(), 0)
