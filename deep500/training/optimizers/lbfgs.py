"""L-BFGS."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.networks.graph_executor import GraphExecutor
from deep500.training._attribute_state import saved_value
from deep500.training.hyperparameters import fraction, positive
from deep500.training.optimizer import Optimizer
from deep500.training.optimizers._evaluation import states_kept

__all__ = ["LBFGSOptimizer"]

_logger = logging.getLogger(__name__)

_Vector = NDArray[np.float64]


class LBFGSOptimizer(Optimizer):
    r"""L-BFGS: quasi-Newton steps from the last changes of the gradient, with a line search.

    .. math::
        s_i &= \theta_{i+1} - \theta_i, \qquad y_i = g_{i+1} - g_i, \qquad \rho_i = 1 / y_i^T s_i \\
        H &\leftarrow (I - \rho_i s_i y_i^T) H (I - \rho_i y_i s_i^T) + \rho_i s_i s_i^T
            \quad\text{for the last } m \text{ pairs, from } H = \gamma I,
            \; \gamma = s_{k-1}^T y_{k-1} / y_{k-1}^T y_{k-1} \\
        \theta_{k+1} &= \theta_k - a_k \alpha H_k g_k

    where :math:`a_k` fulfils the strong Wolfe conditions; 1 is tried first. The product :math:`H_k g_k` is computed by
    the two-loop recursion, in float64 on all parameters as one vector.

    A step is ``iterations`` iterations on one minibatch, which should be the whole data set or a large part of it: the
    gradient is taken at several points of the same function. A network with random nodes in training, such as Dropout,
    is a different function each time and cannot be searched. States, such as running statistics, see the minibatch
    once.

    Attributes:
        learning_rate: Factor :math:`\alpha` of the length that is tried first.
        history_size: Number :math:`m` of pairs that are kept.
        iterations: Iterations a step.
        decrease: Share of the slope that the loss must decrease by, in the first Wolfe condition.
        curvature: Share of the slope that may be left, in the second Wolfe condition.
        evaluations: How often the gradient was taken so far.

    Source: D. C. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization", Mathematical
    Programming 45, 1989; J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithms 7.4, 7.5 and 3.5 (the line
    search is SciPy's).
    """

    hyperparameter_names = ("learning_rate",)
    uses_one_gradient = False

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 1.0,
        history_size: int = 10,
        iterations: int = 1,
        decrease: float = 1e-4,
        curvature: float = 0.9,
        **options: Any,
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: Factor of the length that is tried first, above 0.
            history_size: Number of pairs that are kept, from 1.
            iterations: Iterations a step, from 1.
            decrease: Of the first Wolfe condition, above 0, below ``curvature``.
            curvature: Of the second Wolfe condition, below 1.
            **options: Those of every optimizer change the gradient or the update, and none can be taken: the line
                search needs the loss and its own gradient.

        Raises:
            TrainingError: An argument is not accepted.
        """
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise TrainingError(
                f"LBFGSOptimizer was given {', '.join(given)}; accepted are none of the options that change gradients "
                f"or updates, because its line search needs the loss and the loss's own gradient. Add what is to be "
                f"made small to the network's loss."
            )
        super().__init__(executor, loss)
        self.hyperparameter_names = ("learning_rate",)  # type: ignore[misc] # without those of the options
        self.learning_rate = positive("learning_rate", learning_rate)
        self.history_size = check_count("history_size", history_size, least=1, error=TrainingError)
        self.iterations = check_count("iterations", iterations, least=1, error=TrainingError)
        self.decrease = positive("decrease", decrease)
        self.curvature = fraction("curvature", curvature)
        if not self.decrease < self.curvature:
            raise TrainingError(
                f"decrease was given as {decrease} and curvature as {curvature}; accepted are 0 < decrease < "
                f"curvature < 1, such as 1e-4 and 0.9."
            )
        self.evaluations = 0
        self._steps: list[_Vector] = []
        self._changes: list[_Vector] = []

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch; see :meth:`Optimizer.step`."""
        problem = _Problem(self, inputs)
        outputs = problem.start()
        point, gradient = problem.point, problem.gradient
        with states_kept(self.executor):
            for _ in range(self.iterations):
                following = self._searched(problem, point, gradient)
                if following is None:
                    break
                self._remember(following[0] - point, following[1] - gradient)
                point, gradient = following
        problem.place(point)
        self.step_count += 1
        return outputs

    def _attributes(self) -> dict[str, Any]:
        own = ("_steps", "_changes", "evaluations")
        return {name: saved_value(name, getattr(self, name), self.executor) for name in own}

    def _searched(self, problem: _Problem, point: _Vector, gradient: _Vector) -> tuple[_Vector, _Vector] | None:
        """Return the next point and its gradient; ``None`` where no step makes the loss smaller."""
        if not np.any(gradient):
            return None
        for _ in range(2):
            direction = -self.learning_rate * self._product(gradient)
            found = problem.search(point, gradient, direction)
            if found is not None:
                return found
            if not self._steps:
                break
            # The pairs may be of another function, as when the minibatches differ: start anew from the gradient.
            self._steps, self._changes = [], []
        _logger.warning("L-BFGS found no step that makes the loss %r smaller; the parameters stay.", self.loss)
        return None

    def _remember(self, step: _Vector, change: _Vector) -> None:
        """Keep a pair, unless its curvature is lost in rounding, and forget the oldest ones."""
        if step @ change > np.finfo(np.float64).eps * (change @ change):
            self._steps = [*self._steps, step][-self.history_size :]
            self._changes = [*self._changes, change][-self.history_size :]

    def _product(self, gradient: _Vector) -> _Vector:
        """Return :math:`H g` by the two-loop recursion."""
        rest = gradient.copy()
        weights = []
        for s, y in zip(reversed(self._steps), reversed(self._changes), strict=True):
            weight = (s @ rest) / (y @ s)
            rest -= weight * y
            weights.append(weight)
        if self._steps:
            s, y = self._steps[-1], self._changes[-1]
            rest *= (s @ y) / (y @ y)
        for s, y, weight in zip(self._steps, self._changes, reversed(weights), strict=True):
            rest += (weight - (y @ rest) / (y @ s)) * s
        return rest


class _Problem:
    """A minibatch's loss as a function of one vector, which holds the parameters that the loss depends on."""

    def __init__(self, optimizer: LBFGSOptimizer, inputs: Mapping[str, Any]) -> None:
        self.optimizer, self.inputs = optimizer, inputs
        self.executor, self.network, self.loss = optimizer.executor, optimizer.network, optimizer.loss
        self.names: list[str] = []
        self.point: _Vector = np.zeros(0)
        self.gradient: _Vector = np.zeros(0)
        self.value = 0.0
        self._known: tuple[_Vector, float, _Vector] | None = None

    def start(self) -> dict[str, Any]:
        """Evaluate the parameters as they are, and return the network's outputs."""
        outputs = self._run()
        self.names = [name for name, _ in self.executor.gradient_names(self.loss)]
        arrays = self.network.fetch_tensors(self.names)
        self._shapes = [array.shape for array in arrays]
        self._dtypes = [array.dtype for array in arrays]
        self.point = _joined(arrays)
        self.value, self.gradient = self._result(outputs)
        self._known = self.point, self.value, self.gradient
        # An executor may write the next run's outputs to the same memory.
        return outputs

    def search(self, point: _Vector, gradient: _Vector, direction: _Vector) -> tuple[_Vector, _Vector] | None:
        """Return the point along a direction that fulfils the strong Wolfe conditions, and its gradient."""
        value = self._at(point)[0]
        search: Callable[..., tuple[Any, ...]] = scipy.optimize.line_search
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the result says it too
            length, *_ = search(
                lambda x: self._at(x)[0],
                lambda x: self._at(x)[1],
                point,
                direction,
                gradient,
                value,
                c1=self.optimizer.decrease,
                c2=self.optimizer.curvature,
            )
        if length is None:
            return None
        following = point + length * direction
        return following, self._at(following)[1]

    def place(self, point: _Vector) -> None:
        """Set the parameters to a point."""
        start = 0
        for name, shape, dtype in zip(self.names, self._shapes, self._dtypes, strict=True):
            size = int(np.prod(shape))
            self.network.feed_tensor(name, point[start : start + size].reshape(shape).astype(dtype))
            start += size

    def _at(self, point: _Vector) -> tuple[float, _Vector]:
        """Return loss and gradient at a point; those of the last point are known."""
        if self._known is None or not np.array_equal(self._known[0], point):
            self.place(point)
            self._known = point.copy(), *self._result(self._run())
        return self._known[1], self._known[2]

    def _run(self) -> dict[str, Any]:
        self.optimizer.evaluations += 1
        return self.executor.inference_and_backprop(self.inputs, self.loss)

    def _result(self, outputs: Mapping[str, Any]) -> tuple[float, _Vector]:
        names = dict(self.executor.gradient_names(self.loss))
        gradient = _joined(self.network.fetch_tensors([names[name] for name in self.names]))
        return float(self.executor.to_numpy(outputs[self.loss])), gradient


def _joined(arrays: list[NDArray[Any]]) -> _Vector:
    return np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays])
