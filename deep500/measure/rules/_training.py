"""Which systems are trainings, and what their results say of how good they are."""

from __future__ import annotations

from collections.abc import Iterable

from deep500.measure.document_view import ScoreView, SystemView, text_of
from deep500.measure.metric import MetricKind

__all__ = ["SCORES_REMEDY", "has_low_precision", "is_training", "qualities", "told"]

SCORES_REMEDY = "measure it as a recipe whose METRICS hold an accuracy"

#: What names of dtypes with fewer digits than float32 start with, and words for mixtures with them.
_LOW_PRECISION = (
    "float16",
    "half",
    "fp16",
    "bfloat16",
    "bf16",
    "float8",
    "fp8",
    "float4",
    "int8",
    "int4",
    "tf32",
    "mixed",
)


def is_training(system: SystemView) -> bool:
    """Whether a run of a system trains a model from its first weights to its last."""
    return system.workload_kind == "recipe"


def has_low_precision(system: SystemView) -> bool:
    """Whether a system computes with fewer digits than float32, so that its results may be worse."""
    named = (text_of(system.work.get("dtype")), text_of(system.setting("dtype")), text_of(system.setting("precision")))
    return any(name is not None and name.lower().startswith(_LOW_PRECISION) for name in named)


def qualities(scores: Iterable[ScoreView]) -> list[ScoreView]:
    """Return the scores that have a value and say how good results are, not what they cost."""
    return [score for score in scores if score.value is not None and score.kind is MetricKind.SCORE]


def told(score: ScoreView) -> str:
    """Return a score as a reason shows it."""
    value = "no value" if score.value is None else f"{score.value:.6g} {score.unit}".rstrip()
    return f"{score.name} {value}"
