"""A sampler held to what it promises: each sample once or its stated law, and the same again from the same place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.core.texts import shown
from deep500.measure.metric import TestMetric
from deep500.measure.metric_test import MetricValue, metric_value
from deep500.training.listeners import attached
from deep500.training.sampler import Batch, Sampler
from deep500.training.samplers.choice import ChoiceSampler
from deep500.training.training_event import SamplerEvent
from deep500.training.validation.report import SamplerReport, settled

__all__ = ["test_sampler"]

#: A right sampler's counts are this improbable once in a million tests.
_IMPROBABLE = 1e-6

#: Cells of fewer expected draws are joined, as Pearson's test is not exact for them.
_LEAST_EXPECTED = 5.0


def test_sampler(
    sampler: Sampler,
    expected_output: Mapping[str, Any] | None = None,
    metrics: Iterable[TestMetric] = (),
    events: Iterable[SamplerEvent] = (),
    *,
    epochs: int = 2,
    law: ArrayLike | None = None,
    raise_on_failure: bool = True,
) -> SamplerReport:
    """Go through a sampler's epochs and check what it yields.

    Checked are: the number and the sizes of the minibatches; that each sample comes once an epoch where the sampler
    promises so; else that none comes twice (without replacement), or that the counts follow the stated law (Pearson's
    test); that minibatches hold the data set's samples (where nothing transforms them); and that the same epoch, gone
    through again, yields the same bits. The sampler is afterwards where it was.

    Args:
        sampler: The sampler.
        expected_output: What the first minibatch must be; not compared by default.
        metrics: Such as ``[d5.DatasetBias(10, "label")]``. Each is given one minibatch, or as many as its ``reruns``
            says, from the sampler's place on, epoch after epoch. One that is a ``SamplerEvent`` listens as well.
        events: Further listeners, for the time of the test.
        epochs: Number of epochs.
        law: Probability of each sample in a draw, for samplers with replacement; by default a ``ChoiceSampler``'s
            weights.
        raise_on_failure: Whether what is wrong is an error; else the report says it.

    Returns:
        A report; iterating over it gives what the metrics measured, as the published Deep500 returned it.

    Raises:
        TrainingError: The sampler is wrong.
    """
    if not isinstance(sampler, Sampler):
        raise TrainingError(f"test_sampler was given {shown(sampler)}; accepted is a sampler.")
    check_count("epochs", epochs, least=1, error=TrainingError)
    state = sampler.state()
    try:
        with attached(sampler.events, list(events)):
            check = _Check(sampler, law)
            check.run(epochs, expected_output)
        values, measured = _measured(sampler, state, metrics, expected_output)
    finally:
        sampler.restore(state)
    return settled(check.report(epochs, values, measured), raise_on_failure)


test_sampler.__test__ = False  # type: ignore[attr-defined]


class _Check:
    """One sampler being checked."""

    def __init__(self, sampler: Sampler, law: ArrayLike | None) -> None:
        self.sampler = sampler
        self.law = _law(sampler, law)
        self.failures: list[str] = []
        self.notes: list[str] = []
        self.each_once: bool | None = None
        self.class_counts: tuple[int, ...] = ()
        self.dataset_counts: tuple[int, ...] = ()
        self.bias: float | None = None
        self.p_value: float | None = None

    def run(self, epochs: int, expected: Mapping[str, Any] | None) -> None:
        sampler = self.sampler
        counts = np.zeros(len(sampler.dataset), np.int64)
        labels: list[NDArray[Any]] = []
        for number in range(epochs):
            if sampler.position or number:
                sampler.reset()
            start = sampler.state()
            order = np.concatenate([sampler.samples_at(position) for position in range(len(sampler))])
            batches = [_copied(batch) for batch in sampler]
            counts += np.bincount(order, minlength=len(counts))
            self._check_epoch(sampler.epoch, batches, order)
            if not number and expected is not None:
                self._compare("The first minibatch", batches[0], expected, "what was expected")
            label = sampler.dataset.label_node
            labels += [batch[label] for batch in batches if label is not None and self._has_classes(batch)]
            self._check_repeatable(start, batches)
        self._check_law(counts)
        if labels:
            self._count_classes(np.concatenate([np.ravel(part) for part in labels]))

    def report(self, epochs: int, metrics: tuple[MetricValue, ...], measured: tuple[Any, ...]) -> SamplerReport:
        return SamplerReport(
            type(self.sampler).__name__,
            failures=tuple(self.failures),
            notes=tuple(self.notes),
            metrics=metrics,
            measured=measured,
            epochs=epochs,
            samples_an_epoch=self.sampler.sample_count,
            batches_an_epoch=len(self.sampler),
            each_sample_once=self.each_once,
            class_counts=self.class_counts,
            dataset_counts=self.dataset_counts,
            bias=self.bias,
            law_p_value=self.p_value,
        )

    def _check_epoch(self, epoch: int, batches: Sequence[Batch], order: NDArray[np.int64]) -> None:
        sampler = self.sampler
        sizes = [len(next(iter(batch.values()))) for batch in batches]
        wanted = [sampler.minibatch_size(position) for position in range(len(sampler))]
        if sizes != wanted:
            self._fail(f"Epoch {epoch} yielded minibatches of {shown(sizes)} samples; promised are {shown(wanted)}.")
        drawn = len(np.unique(order))
        if sampler.each_sample_once:
            left_out = len(sampler.dataset) - sampler.sample_count
            once = drawn == len(order) and drawn == len(sampler.dataset) - left_out
            self.each_once = once and self.each_once is not False
            if not once:
                self._fail(
                    f"Epoch {epoch} yielded {drawn} different samples of {len(sampler.dataset)} in {len(order)} draws; "
                    f"promised is each once."
                )
        elif not getattr(sampler, "replacement", True) and drawn < len(order):
            self._fail(f"Epoch {epoch} drew {len(order) - drawn} samples again, without replacement.")
        if sampler.transformations or sizes != wanted:
            return
        start = 0
        for position, (size, batch) in enumerate(zip(sizes, batches, strict=True)):
            samples = sampler.dataset[order[start : start + size]]
            self._compare(f"Minibatch {position} of epoch {epoch}", batch, samples, "the data set's samples")
            start += size

    def _check_repeatable(self, start: Mapping[str, Any], batches: Sequence[Batch]) -> None:
        self.sampler.restore(start)
        for position, (batch, again) in enumerate(zip(batches, self.sampler, strict=False)):
            self._compare(f"Minibatch {position}, yielded again,", again, batch, "what it was")

    def _compare(self, what: str, found: Mapping[str, Any], expected: Mapping[str, Any], text: str) -> None:
        for name in sorted({*found, *expected}):
            if name not in found or name not in expected:
                self._fail(f"{what} has the arrays {', '.join(found)}; {text}: {', '.join(expected)}.")
                return
            one, other = np.asarray(found[name]), np.asarray(expected[name])
            if one.dtype != other.dtype or one.shape != other.shape or one.tobytes() != other.tobytes():
                self._fail(f"{what} differs in {name!r} from {text}.")
                return

    def _check_law(self, counts: NDArray[np.int64]) -> None:
        if self.law is None:
            return
        from scipy.stats import chisquare

        total = int(counts.sum())
        impossible = np.flatnonzero((self.law == 0) & (counts > 0))
        if impossible.size:
            self._fail(f"Sample {impossible[0]} was drawn {counts[impossible[0]]} times; its probability is 0.")
            return
        order = np.argsort(self.law, kind="stable")
        expected: NDArray[np.float64] = self.law[order] * total
        observed: NDArray[np.float64] = counts[order].astype(np.float64)
        # Cells are joined from the least probable on, until each is expected often enough.
        cells = np.floor(np.cumsum(expected) / max(_LEAST_EXPECTED, float(expected.max(initial=0.0)))).astype(np.int64)
        joined = np.unique(cells, return_inverse=True)[1]
        expected = np.bincount(joined, expected).astype(np.float64)
        observed = np.bincount(joined, observed).astype(np.float64)
        if len(expected) > 2 and expected[-1] < _LEAST_EXPECTED:
            expected = np.append(expected[:-2], expected[-2:].sum())
            observed = np.append(observed[:-2], observed[-2:].sum())
        if len(expected) < 2:
            self.notes.append(f"{total} draws are too few to test the law; more epochs are needed.")
            return
        self.p_value = float(chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)
        if self.p_value < _IMPROBABLE:
            self._fail(f"The counts of {total} draws do not follow the stated law (p = {self.p_value:.2g}).")

    def _has_classes(self, batch: Batch) -> bool:
        dataset = self.sampler.dataset
        if dataset.label_node is None or dataset.classes is None or dataset.label_node not in batch:
            return False
        return bool(np.asarray(batch[dataset.label_node]).dtype.kind in "iu")

    def _count_classes(self, labels: NDArray[Any]) -> None:
        dataset = self.sampler.dataset
        classes = dataset.classes or 0
        assert dataset.label_node is not None
        own: NDArray[Any] = np.concatenate(
            [np.ravel(dataset[start : start + 1024][dataset.label_node]) for start in range(0, len(dataset), 1024)]
        )
        drawn = np.bincount(labels[(labels >= 0) & (labels < classes)], minlength=classes)
        there = np.bincount(own[(own >= 0) & (own < classes)], minlength=classes)
        self.class_counts, self.dataset_counts = tuple(drawn.tolist()), tuple(there.tolist())
        shares = [counts / max(int(counts.sum()), 1) for counts in (drawn, there)]
        self.bias = float(np.abs(shares[0] - shares[1]).sum() / 2)

    def _fail(self, text: str) -> None:
        self.failures.append(text)


def _measured(
    sampler: Sampler, state: Mapping[str, Any], metrics: Iterable[TestMetric], expected: Any
) -> tuple[tuple[MetricValue, ...], tuple[Any, ...]]:
    """Give each metric its minibatches, from the sampler's place on."""
    values, measured = [], []
    for given in metrics:
        if not isinstance(given, TestMetric):
            raise TrainingError(f"A metric was given as {shown(given)}; accepted are objects of TestMetric.")
        metric, outputs = given.fresh(), None
        sampler.restore(state)
        with attached(sampler.events, [metric] if isinstance(metric, SamplerEvent) else []):
            for _ in range(max(metric.reruns, 1)):
                if sampler.position >= len(sampler):
                    sampler.reset()
                if not isinstance(metric, SamplerEvent):
                    metric.begin(sampler if metric.requires_inputs else None)
                outputs = next(sampler)
                if not isinstance(metric, SamplerEvent):
                    metric.end(outputs if metric.requires_outputs else None)
        values.append(metric_value(metric, sampler, outputs, expected))
        measured.append(metric.measure(sampler, outputs, expected))
    return tuple(values), tuple(measured)


def _law(sampler: Sampler, law: ArrayLike | None) -> NDArray[np.float64] | None:
    """Return the probability of each sample in a draw; ``None`` where none is stated."""
    count = len(sampler.dataset)
    if law is None:
        if not isinstance(sampler, ChoiceSampler) or not sampler.replacement:
            return None
        law = np.ones(count) if sampler.weights is None else sampler.weights
    shares = np.asarray(law, np.float64)
    if shares.shape != (count,) or not np.isfinite(shares).all() or (shares < 0).any() or not shares.any():
        raise TrainingError(
            f"law was given with the shape {shares.shape}; accepted is a probability for each of the {count} samples."
        )
    return np.asarray(shares / shares.sum())


def _copied(batch: Batch) -> Batch:
    return {name: np.array(value) for name, value in batch.items()}
