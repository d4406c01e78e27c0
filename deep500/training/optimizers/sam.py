"""SAM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.stateful import State
from deep500.core.texts import shown
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.parameter_updates import ParameterUpdates
from deep500.training.hyperparameters import positive
from deep500.training.optimizer import Optimizer, ThreeStepOptimizer
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.optimizers._evaluation import states_kept
from deep500.training.optimizers.momentum import MomentumOptimizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["SAMOptimizer"]

#: What is read from and written to the base optimizer, besides its hyperparameters.
_OF_THE_BASE = ("step_count", "gradient_modifier", "accumulation_steps", "ema_decay")


class SAMOptimizer(Optimizer):
    r"""SAM: another optimizer's step, by the gradient where the loss is worst nearby.

    .. math::
        \hat\epsilon_t &= \rho \, \nabla L(\theta_{t-1}) / \|\nabla L(\theta_{t-1})\|_2 \\
        g_t &= \nabla L(\theta_{t-1} + \hat\epsilon_t)

    with the norm over all parameters; :math:`\theta_t` is what the base optimizer makes of :math:`\theta_{t-1}` and
    :math:`g_t`. A step runs the network twice; states, such as running statistics, see the minibatch once, at
    :math:`\theta_{t-1}`, where the outputs are from too.

    Attributes:
        base: The optimizer whose step is taken. Its hyperparameters are read and written here as well.
        rho: The distance :math:`\rho`; it may be changed between steps.

    Source: P. Foret et al., "Sharpness-Aware Minimization for Efficiently Improving Generalization", ICLR 2021,
    algorithm 1 and equation 2 with p = 2; :math:`\rho = 0.05`.
    """

    uses_one_gradient = False

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.1,
        rho: float = 0.05,
        base: Callable[..., Optimizer] = MomentumOptimizer,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The base's step size.
            rho: How far away the gradient is taken, above 0.
            base: Makes the base optimizer, called with executor, loss, learning rate and options: a class, such as one
                of a framework's own, or a function of these.
            **options: The base's; see :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss)
        if not callable(base):
            raise TrainingError(
                f"base was given as {shown(base)}; accepted is the class of an optimizer, such as AdamOptimizer, or a "
                f"function of (executor, loss, learning_rate, **options) that returns one."
            )
        made = base(executor, loss, learning_rate, **options)
        if not isinstance(made, Optimizer) or made.executor is not executor:
            raise TrainingError(f"base made {shown(made)}; accepted is an optimizer of the same executor.")
        has_own_step = isinstance(made, ThreeStepOptimizer) and type(made).step is not ThreeStepOptimizer.step
        if has_own_step or not getattr(made, "uses_one_gradient", True):
            raise TrainingError(
                f"base made a {type(made).__name__}, which has a step of its own; accepted are optimizers that use one "
                f"gradient a step."
            )
        self.hyperparameter_names = ("rho", *made.hyperparameter_names)  # type: ignore[misc] # known only now
        self.rho = positive("rho", rho)
        for name in (*made.hyperparameter_names, *_OF_THE_BASE):
            vars(self).pop(name, None)
        self.base = made

    def __getattr__(self, name: str) -> Any:
        """Return what the base optimizer has."""
        base = vars(self).get("base")
        if base is None or name not in (*base.hyperparameter_names, *_OF_THE_BASE):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(base, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, at the base optimizer if it is the base's."""
        base = vars(self).get("base")
        is_base = base is not None and name in (*base.hyperparameter_names, *_OF_THE_BASE)
        if is_base:
            setattr(base, name, value)
        else:
            super().__setattr__(name, value)

    @property
    def updates(self) -> ParameterUpdates:
        """What changes the parameters for the base optimizer."""
        return self.base.updates

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch; see :meth:`Optimizer.step`."""
        updates = self.updates
        if isinstance(self.base, ThreeStepOptimizer):
            self.base.begin_step()
        outputs = self.executor.inference_and_backprop(inputs, self.loss)
        names = [name for name, _ in self.executor.gradient_names(self.loss)]
        gradients = [self.executor.gradient_tensor(name) for name in names]
        found = [gradient for gradient in gradients if gradient is not None]
        norm = float(self.executor.tensor_functions.global_norm(found)) if found else 0.0
        kept: dict[str, Any] = {}

        def to_the_worst(gradient: Any, parameter: Any, name: str) -> Any:
            kept[name] = parameter * 1.0  # of its own memory: executors may change parameters in place
            return parameter + gradient * (float(self.rho) / norm)

        if norm:  # where the loss is flat, it is as bad nearby
            self.executor.update_parameters(to_the_worst)
            with states_kept(self.executor):
                self.executor.inference_and_backprop(inputs, self.loss)
            self.executor.update_parameters(lambda gradient, parameter, name: kept[name])
        # A framework's own optimizer updates in its own way.
        getattr(self.base, "apply_gradients", updates.apply)()
        return outputs

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Put the average of the parameters in their place; see :meth:`Optimizer.averaged`."""
        with self.base.averaged():
            yield

    def state(self) -> State:
        """Return a snapshot of the distance and of the base optimizer."""
        return {"optimizer": type(self).__name__, "rho": float(self.rho), "base": self.base.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot; see :meth:`Optimizer.restore`."""
        if state.get("optimizer") != type(self).__name__ or not {"rho", "base"} <= set(state):
            raise CheckpointError(
                f"The checkpoint is of the optimizer {state.get('optimizer')!r}; this one is {type(self).__name__!r}. "
                f"Go on with the optimizer that was used."
            )
        self.base.restore(state["base"])
        self.rho = float(state["rho"])
