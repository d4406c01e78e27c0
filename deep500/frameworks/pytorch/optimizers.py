"""PyTorch's own optimizers behind the common contract, under the names that TensorFlow's have as well.

Their formulas are those of ``torch.optim``; where these are not the ones of the optimizer of the same name in
``deep500.training.optimizers``, the class says how they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import torch

from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, TrainingError
from deep500.frameworks.pytorch._muon import MuonWithAdamW
from deep500.frameworks.pytorch._native_optimizer import NativeOptimizer
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import flag, fraction, non_negative, positive
from deep500.training.native_optimizer import NativeHyperparameter
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.optimizers._evaluation import states_kept

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "AMSGradOptimizer",
    "AdaGradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "GradientDescent",
    "LBFGSOptimizer",
    "MomentumOptimizer",
    "MuonOptimizer",
    "NativeOptimizer",
    "RMSPropOptimizer",
]

_Places: TypeAlias = Mapping[str, NativeHyperparameter]

_RATE = NativeHyperparameter("lr")
_MOMENTUM = NativeHyperparameter("momentum", check=fraction)
_EPSILON = NativeHyperparameter("eps", check=positive)
_ADAM: _Places = {
    "learning_rate": _RATE,
    "beta1": NativeHyperparameter("betas", 0, fraction),
    "beta2": NativeHyperparameter("betas", 1, fraction),
    "epsilon": _EPSILON,
}


class GradientDescent(NativeOptimizer):
    """``torch.optim.SGD`` without momentum."""

    kind = torch.optim.SGD
    has_fused_kernel = True
    native_hyperparameters: ClassVar[_Places] = {"learning_rate": _RATE}

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.1,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`."""
        super().__init__(executor, loss, {"learning_rate": learning_rate}, **options)


class MomentumOptimizer(NativeOptimizer):
    """``torch.optim.SGD`` with momentum."""

    kind = torch.optim.SGD
    has_fused_kernel = True
    native_hyperparameters: ClassVar[_Places] = {
        "learning_rate": _RATE,
        "momentum": _MOMENTUM,
    }

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        nesterov: bool = False,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`.

        Raises:
            TrainingError: As there; or Nesterov's momentum is 0, which PyTorch refuses.
        """
        if flag("nesterov", nesterov) and fraction("momentum", momentum) == 0.0:
            raise TrainingError(
                "momentum was given as 0 and nesterov as True; PyTorch accepts a momentum above 0 then. Give one, or "
                "leave nesterov out: without momentum there is nothing to look ahead to."
            )
        values = {"learning_rate": learning_rate, "momentum": momentum}
        super().__init__(executor, loss, values, {"nesterov": nesterov}, **options)
        self._add_missing_buffers()

    def _set_attributes(self, values: Mapping[str, Any]) -> None:
        super()._set_attributes(values)
        self._add_missing_buffers()

    def _add_missing_buffers(self) -> None:
        """Start all buffers at once, at zero.

        The fused kernel takes buffers of all parameters or of none, and some may get their first gradient later than
        others. From zero, the first step makes the buffer the gradient, as PyTorch does.
        """
        if self._native_groups:
            for parameter in self.parameters.values():
                state = self.native.state[parameter]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(parameter)


class AdaGradOptimizer(NativeOptimizer):
    """``torch.optim.Adagrad``."""

    kind = torch.optim.Adagrad
    has_fused_kernel = True
    native_hyperparameters: ClassVar[_Places] = {
        "learning_rate": _RATE,
        "epsilon": _EPSILON,
    }

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        epsilon: float = 1e-10,
        initial_accumulator: float = 0.0,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`."""
        start = {"initial_accumulator_value": non_negative("initial_accumulator", initial_accumulator)}
        super().__init__(executor, loss, {"learning_rate": learning_rate, "epsilon": epsilon}, start, **options)


class RMSPropOptimizer(NativeOptimizer):
    """``torch.optim.RMSprop``."""

    kind = torch.optim.RMSprop
    native_hyperparameters: ClassVar[_Places] = {
        "learning_rate": _RATE,
        "decay": NativeHyperparameter("alpha", check=fraction),
        "epsilon": _EPSILON,
        "momentum": _MOMENTUM,
    }

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        decay: float = 0.9,
        epsilon: float = 1e-8,
        momentum: float = 0.0,
        centered: bool = False,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`."""
        values = {"learning_rate": learning_rate, "decay": decay, "epsilon": epsilon, "momentum": momentum}
        super().__init__(executor, loss, values, {"centered": flag("centered", centered)}, **options)


class AdamOptimizer(NativeOptimizer):
    """``torch.optim.Adam``."""

    kind = torch.optim.Adam
    has_fused_kernel = True
    native_hyperparameters: ClassVar[_Places] = _ADAM

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`."""
        values = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__(executor, loss, values, **options)


class AdamWOptimizer(NativeOptimizer):
    """``torch.optim.AdamW``; its own decay of weights is the option ``weight_decay``, 0.01 by default."""

    kind = torch.optim.AdamW
    has_fused_kernel = True
    native_hyperparameters: ClassVar[_Places] = {**_ADAM, "weight_decay": NativeHyperparameter("weight_decay")}
    decays_weights = False

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`."""
        options.setdefault("weight_decay", 0.01)
        values = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__(executor, loss, values, **options)


class AMSGradOptimizer(NativeOptimizer):
    """``torch.optim.Adam`` with ``amsgrad``, which is the paper's with ``bias_correction``."""

    kind = torch.optim.Adam
    has_fused_kernel = True
    native_hyperparameters: ClassVar[_Places] = _ADAM

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`."""
        values = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__(executor, loss, values, {"amsgrad": True}, **options)


class MuonOptimizer(NativeOptimizer):
    """``torch.optim.Muon`` for matrices, ``torch.optim.AdamW`` for the other parameters, kernels among them.

    PyTorch iterates in bfloat16, takes momentum as a mean (of which the iteration sees the direction alone), and has no
    Muon for tensors of rank above 2.
    """

    kind = MuonWithAdamW
    native_hyperparameters: ClassVar[_Places] = {
        "learning_rate": _RATE,
        "momentum": _MOMENTUM,
        "adam_ratio": NativeHyperparameter("adam_ratio"),
        "beta1": NativeHyperparameter("betas", 0, fraction),
        "beta2": NativeHyperparameter("betas", 1, fraction),
        "epsilon": NativeHyperparameter("adam_eps", check=positive),
        "weight_decay": NativeHyperparameter("weight_decay"),
    }
    decays_weights = False

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.02,
        momentum: float = 0.95,
        nesterov: bool = True,
        iterations: int = 5,
        adam_ratio: float = 0.015,
        beta1: float = 0.9,
        beta2: float = 0.95,
        epsilon: float = 1e-10,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`."""
        values = {
            "learning_rate": learning_rate,
            "momentum": momentum,
            "adam_ratio": adam_ratio,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
        }
        steps = check_count("iterations", iterations, least=1, error=TrainingError)
        fixed = {"nesterov": flag("nesterov", nesterov), "ns_steps": steps}
        super().__init__(executor, loss, values, fixed, **options)


class LBFGSOptimizer(NativeOptimizer):
    """``torch.optim.LBFGS`` with its search of the strong Wolfe conditions.

    The step that is tried first is 1, and in the first iteration the inverse of the gradient's 1-norm where that is
    shorter; the search is another one than SciPy's. Options that change gradients are not accepted, as in the optimizer
    of the same name in ``deep500.training.optimizers``.
    """

    kind = torch.optim.LBFGS
    native_hyperparameters: ClassVar[_Places] = {"learning_rate": NativeHyperparameter("lr", check=positive)}
    decays_weights = False
    uses_one_gradient = False

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 1.0,
        history_size: int = 10,
        iterations: int = 1,
        **options: Any,
    ) -> None:
        """Attach to an executor; see :class:`NativeOptimizer`.

        Raises:
            TrainingError: As there; or an option was given.
        """
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise TrainingError(
                f"LBFGSOptimizer was given {', '.join(given)}; accepted are none of the options that change gradients "
                f"or updates, because its line search needs the loss and the loss's own gradient."
            )
        fixed = {
            "history_size": check_count("history_size", history_size, least=1, error=TrainingError),
            "max_iter": check_count("iterations", iterations, least=1, error=TrainingError),
            "tolerance_grad": 0.0,
            "tolerance_change": 0.0,
            "line_search_fn": "strong_wolfe",
        }
        super().__init__(executor, loss, {"learning_rate": learning_rate}, fixed)

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch; see :meth:`Optimizer.step`."""
        outputs = self.executor.inference_and_backprop(inputs, self.loss)
        known: list[dict[str, Any]] = [outputs]

        def evaluate() -> Any:
            found = known.pop() if known else self.executor.inference_and_backprop(inputs, self.loss)
            return found[self.loss]

        with states_kept(self.executor):
            self.native.step(evaluate)
        self.step_count += 1
        return outputs

    def _check_shapes(self, name: str, values: Mapping[str, Any]) -> None:
        # PyTorch keeps vectors of all parameters together, at the first one.
        size = sum(parameter.numel() for parameter in self.parameters.values())
        for key, value in values.items():
            for tensor in value if isinstance(value, list) else [value]:
                if isinstance(tensor, torch.Tensor) and tensor.ndim and tuple(tensor.shape) != (size,):
                    raise CheckpointError(
                        f"The checkpoint has {key!r} in shape {tuple(tensor.shape)}; the parameters of this network "
                        f"have {size} elements. Restore it with the network that was trained."
                    )
