"""The contract of an optimizer, and the two forms in which one is written once for every framework."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from deep500.core.errors import TrainingError
from deep500.networks.graph_executor import GraphExecutor

__all__ = ["GradientModifier", "Optimizer", "ThreeStepOptimizer", "UpdateRuleOptimizer"]

#: Changes a gradient before it is used: ``modifier(gradient)``, ``modifier(gradient, parameter)`` or
#: ``modifier(gradient, parameter, name)`` returns the gradient to use, on the framework's own tensors.
GradientModifier = Callable[..., Any]


class Optimizer(abc.ABC):
    """Makes a loss smaller, one minibatch a step.

    Creating an optimizer puts the executor's network in training mode.

    Attributes:
        executor: What runs the network.
        network: The network, bound to the executor.
        loss: Name of the output that is made small.
    """

    def __init__(
        self, executor: GraphExecutor, loss: str = "loss", *, gradient_modifier: GradientModifier | None = None
    ) -> None:
        """Attach to an executor.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            gradient_modifier: Changes each gradient before it is used, for example for weight decay:
                ``lambda gradient, parameter: gradient + 1e-4 * parameter``.

        Raises:
            TrainingError: The executor is none, the network has no such loss or no parameters, or the modifier takes
                other arguments.
        """
        if not isinstance(executor, GraphExecutor):
            raise TrainingError(
                f"An optimizer needs an executor as its first argument; received {type(executor).__name__}. "
                f"Make one with deep500.frameworks.<framework>.from_model(network)."
            )
        known = [*executor.network.losses, *executor.network.outputs]
        if loss not in known:
            raise TrainingError(
                f"The network has no output named {loss!r} to optimize. Its outputs: {', '.join(known)}. "
                f"network.append_loss('SoftmaxCrossEntropyLoss') adds a loss."
            )
        if not executor.network.get_params():
            raise TrainingError("The network has no parameters, so there is nothing to train.")
        self.executor = executor
        self.network = executor.network
        self.loss = loss
        self.gradient_modifier = _three_arguments(gradient_modifier)
        self.network.train()

    @abc.abstractmethod
    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch.

        Args:
            inputs: A tensor for every input of the network, the labels included.

        Returns:
            Outputs and losses by name, from before the update, as the framework's tensors.
        """

    def modified(self, grad: Any, param: Any, param_name: str) -> Any:
        """Return a gradient as the ``gradient_modifier`` changes it, or itself when there is none.

        Raises:
            TrainingError: The modifier returned no tensor like the gradient.
        """
        if self.gradient_modifier is None:
            return grad
        changed = self.gradient_modifier(grad, param, param_name)
        _check_like(changed, grad, param_name)
        return changed


class ThreeStepOptimizer(Optimizer):
    """An optimizer written once: new input, preparation of each parameter, update rule for each parameter.

    The update rule is given, and returns, the framework's own tensors (NumPy arrays, ``torch.Tensor``, ``tf.Tensor``).
    Python's operators (``+ - * / **``) mean the same on all of them, so that one rule serves every framework.
    """

    def new_input(self) -> None:
        """Called once before each step."""

    def prepare_param(self, param_name: str) -> None:
        """Called for each parameter before the network runs.

        It may change the parameter: ``network.fetch_tensors([name])``, then ``network.feed_tensor(name, value)``.
        """

    @abc.abstractmethod
    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the next value of a parameter.

        Args:
            grad: Gradient of the loss by the parameter.
            old_param: The parameter's value.
            param_name: The parameter's name.
        """

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch; see :meth:`Optimizer.step`."""
        self.new_input()
        if type(self).prepare_param is not ThreeStepOptimizer.prepare_param:
            for name in self.network.get_params():
                self.prepare_param(name)
        outputs = self.executor.inference_and_backprop(inputs, self.loss)
        self.executor.update_parameters(self._rule)
        return outputs

    def _rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        return self.update_rule(self.modified(grad, old_param, param_name), old_param, param_name)


class UpdateRuleOptimizer(ThreeStepOptimizer):
    """An optimizer that is nothing but an update rule.

    Example:
        >>> class Halving(UpdateRuleOptimizer):
        ...     def update_rule(self, grad, old_param, param_name):
        ...         return old_param - 0.5 * grad
    """


def _check_like(changed: Any, grad: Any, param_name: str) -> None:
    """Check that a modifier returned a gradient: a number or a smaller tensor would train something, but not that."""
    if not hasattr(grad, "shape") or (
        type(changed) is type(grad) and changed.shape == grad.shape and changed.dtype == grad.dtype
    ):
        return  # the usual case, which must cost a step next to nothing; or a rule that is tried on plain numbers
    if _kind(changed) != _kind(grad):
        received = _kind(changed) or f"a {type(changed).__name__}"
        raise TrainingError(
            f"gradient_modifier returned {received} for the parameter {param_name!r}; it must return a tensor like the "
            f"gradient, {_kind(grad)}. Python's own numbers, as in gradient * 0.5, keep the dtype."
        )


def _kind(tensor: Any) -> str:
    """Return dtype and shape, such as ``"float32[3, 4]"``; an empty text for what is no tensor."""
    if not hasattr(tensor, "shape") or not hasattr(tensor, "dtype"):
        return ""
    dtype = getattr(tensor.dtype, "name", None) or str(tensor.dtype)
    return f"{dtype}[{', '.join(map(str, tensor.shape))}]"


def _three_arguments(modifier: GradientModifier | None) -> GradientModifier | None:
    """Return the modifier in the form that takes gradient, parameter and name."""
    if modifier is None:
        return None
    if not callable(modifier):
        raise TrainingError(
            f"gradient_modifier was given as {modifier!r}; accepted is a function of (gradient), "
            f"(gradient, parameter) or (gradient, parameter, name)."
        )
    try:
        parameters = inspect.signature(modifier).parameters.values()
    except (TypeError, ValueError):  # a built-in without a signature
        return lambda grad, param, name: modifier(grad)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    count = 3 if variadic else len(required) if required else min(len(positional), 3)
    if not 1 <= count <= 3 or any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise TrainingError(
            f"gradient_modifier takes {count} arguments; accepted is a function of (gradient), "
            f"(gradient, parameter) or (gradient, parameter, name)."
        )
    return lambda grad, param, name: modifier(*(grad, param, name)[:count])
