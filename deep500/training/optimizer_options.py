"""The options that every optimizer takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError, near_miss
from deep500.training._gradient_modifier import GradientModifier
from deep500.training.hyperparameters import fraction, non_negative, positive
from deep500.training.parameter_groups import ParameterGroup

__all__ = ["OptimizerOptions", "checked_options"]


class OptimizerOptions(TypedDict, total=False):
    r"""Options of every optimizer, in the order in which they act.

    Attributes:
        accumulation_steps: Number :math:`k` of minibatches for one update, with the mean of their gradients: for equal
            minibatches and a loss that is a mean over samples, the same as one minibatch of them all.
        gradient_modifier: Changes each gradient before it is used: a function of (gradient), (gradient, parameter) or
            (gradient, parameter, name). It sees what the network declares: kernels are ``[O, I, spatial...]``.
        clip_value: Largest absolute value :math:`c` of an element: :math:`g \leftarrow \min(\max(g, -c), c)`.
        clip_norm: Largest 2-norm :math:`c` of all gradients together: :math:`g \leftarrow g \cdot c / \|g\|` when
            :math:`\|g\| > c`, as in R. Pascanu et al., "On the difficulty of training recurrent neural networks", 2013.
        weight_decay: Decoupled decay :math:`\lambda`: before the rule, :math:`\theta \leftarrow (1 - \alpha\lambda)
            \theta` with the learning rate :math:`\alpha`, as in I. Loshchilov, F. Hutter, "Decoupled weight decay
            regularization", 2019. (:math:`\ell_2` regularisation is a ``gradient_modifier``.)
        parameter_groups: Hyperparameters of some parameters: pairs of a pattern of names such as ``"*.bias"``, or a
            function of (name, descriptor), and a dictionary of numbers or :class:`Multiplier`.
        ema_decay: Decay :math:`d` of the parameters' average, :math:`a_t = d a_{t-1} + (1 - d) \theta_t` with
            :math:`a_0 = \theta_0`; ``optimizer.averaged()`` puts it in the parameters' place.
    """

    accumulation_steps: int
    gradient_modifier: GradientModifier | None
    clip_value: float | None
    clip_norm: float | None
    weight_decay: float
    parameter_groups: Iterable[ParameterGroup] | None
    ema_decay: float | None


def checked_options(optimizer: str, given: Mapping[str, Any]) -> OptimizerOptions:
    """Return all options, those that were not given by their defaults.

    Args:
        optimizer: Name of the optimizer, for messages.
        given: The options that were given.

    Raises:
        TrainingError: There is no such option, or a value is not accepted.
    """
    known = tuple(OptimizerOptions.__annotations__)
    for name in given:
        if name not in known:
            raise TrainingError(
                f"{optimizer} takes no argument {name!r}.{near_miss(name, known)} Besides its own it takes: "
                f"{', '.join(known)}."
            )
    limits = {name: given.get(name) for name in ("clip_value", "clip_norm")}
    decay = given.get("ema_decay")
    return OptimizerOptions(
        accumulation_steps=check_count(
            "accumulation_steps", given.get("accumulation_steps", 1), least=1, error=TrainingError
        ),
        gradient_modifier=given.get("gradient_modifier"),
        clip_value=None if limits["clip_value"] is None else positive("clip_value", limits["clip_value"]),
        clip_norm=None if limits["clip_norm"] is None else positive("clip_norm", limits["clip_norm"]),
        weight_decay=non_negative("weight_decay", given.get("weight_decay", 0.0)),
        parameter_groups=given.get("parameter_groups"),
        ema_decay=None if decay is None else fraction("ema_decay", decay),
    )
