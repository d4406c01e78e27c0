r"""Loss scaling: gradients that are too small for float16 are computed of a multiple of the loss.

The loss is multiplied by a scale :math:`S` before it is differentiated, and the gradients, which are float32 again, are
divided by it before anything else sees them. Where one is not finite, the scale was too large: nothing is updated, and
the scale becomes smaller. After enough good steps it becomes larger again.

Source: P. Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.2. The scale's course, and its default
numbers, are those of ``torch.amp.GradScaler``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import GraphBuilder

from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, InvalidNetworkError, TrainingError
from deep500.core.stateful import State
from deep500.networks.network import Network
from deep500.networks.parameter_updates import ParameterUpdates
from deep500.networks.tensor_roles import ROLE_KEY
from deep500.training.hyperparameters import positive
from deep500.training.optimizer import Optimizer, ThreeStepOptimizer

__all__ = ["SCALE_INPUT", "DynamicLossScale", "LossScaledOptimizer", "scaled_loss", "with_scaled_losses"]

#: Name of the network's input that losses are multiplied by.
SCALE_INPUT = "loss_scale"


def scaled_loss(loss: str) -> str:
    """Return the name of the multiple of a loss."""
    return f"{loss}.scaled"


def with_scaled_losses(network: Network) -> Network:
    """Return a network with a multiple of each of its losses, and an input :data:`SCALE_INPUT` for the factor.

    Raises:
        InvalidNetworkError: It has no loss, or uses one of the names already.
    """
    losses = list(network.losses)
    if not losses:
        raise InvalidNetworkError(
            f"Network {network.name!r} has no loss to scale; append one before: network.append_loss(...)."
        )
    result = network.detached()
    graph = result.model.graph
    taken = {value.name for node in graph for value in node.outputs} | set(network.inputs) | set(graph.initializers)
    clash = [name for name in (SCALE_INPUT, *map(scaled_loss, losses)) if name in taken]
    if clash:
        raise InvalidNetworkError(f"Network {network.name!r} has {', '.join(clash)} already; its losses are scaled.")
    values = {value.name: value for value in graph.outputs}
    builder = GraphBuilder(graph)
    scale = builder.input(SCALE_INPUT, ir.DataType.FLOAT, [])
    for loss in losses:
        product = builder.op.Mul(values[loss], scale)
        product.metadata_props[ROLE_KEY] = "loss"
        builder.add_output(product, scaled_loss(loss))
    return result


class DynamicLossScale:
    """The factor of a loss, which grows while gradients stay finite and shrinks when they do not.

    Attributes:
        scale: The factor of the next step.
        growth: What it is multiplied by after ``interval`` good steps in a row.
        backoff: What it is multiplied by after a bad one.
        interval: Number of good steps in a row after which it grows.
        good_steps: Number of good steps since it last changed.
        skipped: Number of bad steps so far, which updated nothing.
    """

    #: With a factor this small, what is not finite did not become so by the scale.
    least = 2.0**-14

    def __init__(self, scale: float = 2.0**16, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000) -> None:
        """Choose where it begins and how it changes; powers of two divide without a rounding.

        Raises:
            TrainingError: A number is not accepted.
        """
        self.scale = positive("scale", scale)
        self.growth, self.backoff = positive("growth", growth), positive("backoff", backoff)
        if self.growth < 1 or self.backoff >= 1:
            raise TrainingError(
                f"growth is {growth!r} and backoff {backoff!r}; accepted are a growth from 1 and a backoff below 1."
            )
        self.interval = check_count("interval", interval, least=1, error=TrainingError)
        self.good_steps = self.skipped = 0

    def tell(self, *, finite: bool) -> None:
        """Take note of whether the gradients of a step were finite.

        Raises:
            TrainingError: They were not, though the scale is as small as it gets.
        """
        if not finite:
            self.skipped += 1
            self.good_steps = 0
            if self.scale < self.least:
                raise TrainingError(
                    f"The gradients are not finite even with the loss scaled by {self.scale:.3g}, so the loss or a "
                    f"parameter is not. {self.skipped} steps were skipped. Look at the data and the learning rate."
                )
            self.scale *= self.backoff
            return
        self.good_steps += 1
        if self.good_steps >= self.interval:
            self.good_steps = 0
            # A larger one would not be finite as a float32 tensor.
            self.scale = min(self.scale * self.growth, 2.0**127)

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        return {"scale": self.scale, "good_steps": self.good_steps, "skipped": self.skipped}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot.

        Raises:
            CheckpointError: It is none.
        """
        try:
            scale, good, skipped = (state[name] for name in ("scale", "good_steps", "skipped"))
            self.scale, self.good_steps, self.skipped = float(scale), int(good), int(skipped)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"The checkpoint holds no loss scale: {error!r}.") from error


class LossScaledOptimizer(Optimizer):
    """An optimizer that is given the gradients of a multiple of the loss, divided by the factor.

    Its hyperparameters and options are those of the optimizer that it wraps; they see the gradients as they would be
    without a scale. A step whose gradients are not finite updates nothing and is not counted in ``step_count``.

    Attributes:
        optimizer: What updates the parameters.
        scaling: The factor, and the number of skipped steps.
    """

    def __init__(self, optimizer: Optimizer, scaling: DynamicLossScale | None = None) -> None:
        """Wrap an optimizer.

        Args:
            optimizer: One that takes one gradient a step; its network has scaled losses (:func:`with_scaled_losses`).
            scaling: The factor; by default it begins with 2 ** 16.

        Raises:
            TrainingError: The optimizer takes several gradients a step or prepares parameters, or the network's loss is
                not scaled.
        """
        if not isinstance(optimizer, Optimizer) or not _takes_one_gradient(optimizer):
            raise TrainingError(
                f"{type(optimizer).__name__} takes several gradients a step or prepares parameters for them, so that "
                f"its steps cannot be skipped when a scaled gradient is not finite. Use precision 'bfloat16', which "
                f"needs no scaling, or another optimizer."
            )
        if scaled_loss(optimizer.loss) not in optimizer.network.losses:
            raise TrainingError(
                f"The network has no output {scaled_loss(optimizer.loss)!r}. "
                f"deep500.training.precision.apply_precision(network, 'float16') appends it."
            )
        self.optimizer = optimizer
        self.scaling = scaling or DynamicLossScale()
        self.executor, self.network, self.loss = optimizer.executor, optimizer.network, optimizer.loss
        self.hyperparameter_names = optimizer.hyperparameter_names  # type: ignore[misc]  # those of the wrapped one

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch, unless its gradients are not finite; see :meth:`Optimizer.step`."""
        wrapped, executor, scale = self.optimizer, self.executor, self.scaling.scale
        if isinstance(wrapped, ThreeStepOptimizer):
            wrapped.begin_step()
        outputs = executor.inference_and_backprop({**inputs, SCALE_INPUT: np.float32(scale)}, scaled_loss(self.loss))
        outputs.pop(scaled_loss(self.loss), None)
        norm = executor.tensor_functions.global_norm(list(self._gradients()))
        # Reading it waits for the device, as it must: whether to update depends on it.
        finite = math.isfinite(float(executor.to_numpy(norm)))
        self.scaling.tell(finite=finite)
        if finite:
            factor = 1.0 / scale
            executor.replace_gradients(lambda gradient, name: gradient * factor)
            getattr(wrapped, "apply_gradients", wrapped.updates.apply)()
        return outputs

    def _gradients(self) -> Iterator[Any]:
        names = (name for name, _ in self.executor.gradient_names(scaled_loss(self.loss)))
        found = (self.executor.gradient_tensor(name) for name in names)
        return (gradient for gradient in found if gradient is not None)

    @property
    def updates(self) -> ParameterUpdates:
        """What changes the parameters for the wrapped optimizer."""
        return self.optimizer.updates

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped optimizer, such as its learning rate."""
        if name == "optimizer":  # not set yet
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a hyperparameter, or what else the wrapped optimizer has, is set there."""
        own = name in _OWN or not hasattr(self.optimizer, name)
        object.__setattr__(self if own else self.optimizer, name, value)

    def averaged(self) -> Any:
        """Put the average of the parameters in their place; see :meth:`Optimizer.averaged`."""
        return self.optimizer.averaged()

    def state(self) -> State:
        """Return a snapshot of the wrapped optimizer and of the factor; see :class:`Stateful`."""
        return {"optimizer": type(self).__name__, "wrapped": self.optimizer.state(), "scaling": self.scaling.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot.

        Raises:
            CheckpointError: It is of another optimizer or network; nothing is changed then.
        """
        if state.get("optimizer") != type(self).__name__ or "wrapped" not in state or "scaling" not in state:
            raise CheckpointError(
                f"The checkpoint is of the optimizer {state.get('optimizer')!r} without a scaled loss; this training "
                f"scales it. Go on with the precision that was used."
            )
        before = self.scaling.state()
        self.scaling.restore(state["scaling"])
        try:
            self.optimizer.restore(state["wrapped"])
        except BaseException:
            self.scaling.restore(before)
            raise


#: What the wrapper has itself.
_OWN = frozenset(("optimizer", "scaling", "executor", "network", "loss", "hyperparameter_names"))


def _takes_one_gradient(optimizer: Optimizer) -> bool:
    """Whether a step is one gradient and one update, which can be left out."""
    if hasattr(optimizer, "apply_gradients"):
        return True
    if not isinstance(optimizer, ThreeStepOptimizer):
        return False
    kind = type(optimizer)
    return kind.step is ThreeStepOptimizer.step and kind.prepare_param is ThreeStepOptimizer.prepare_param
