"""SC15, rule 12: the samples themselves are kept, so that others can look at them in other ways."""

from __future__ import annotations

from deep500.measure.document_view import DocumentView, MetricView, items_of, mapping_of
from deep500.measure.rule import Finding, Rule
from deep500.measure.rules._hashes import hash_problems

__all__ = ["RawSamples"]


class RawSamples(Rule):
    """Samples are there, launch by launch, and the hashes beside them are those of what they stand for."""

    number = "12"
    title = "The raw samples are kept, launch by launch"

    def measurement(self, document: DocumentView) -> Finding:
        """Look at every sample, and compute the hashes again."""
        metrics = list(document.metrics)
        broken = list(document.sample_problems)
        broken += [f"{metric.name} has no samples" for metric in metrics if not metric.launches]
        broken += [f"{system.label} has no metric" for system in document.systems if not system.metrics]
        broken += [text for metric in metrics if (text := _mixed(metric))]
        broken += hash_problems(document)
        if not document.systems:
            broken.append("there are no systems with samples")
        samples, launches = sum(metric.count for metric in metrics), sum(len(metric.rows) for metric in metrics)
        evidence = f"{samples} samples in {launches} launches of {len(metrics)} metrics, and all hashes fit"
        return self.judged(broken, [evidence], "")

    def comparison(self, document: DocumentView) -> Finding:
        """Say where to look: a comparison holds what was computed."""
        return self.not_applicable("a comparison is computed; the samples stand in the measurements that it names")

    def recipe(self, document: DocumentView) -> Finding:
        """Ask for the record of each epoch."""
        epochs = items_of(document.part("statistics.epochs"))
        if not epochs or not all(mapping_of(mapping_of(epoch).get("training")) for epoch in epochs):
            return self.broken("the record of every epoch is missing under statistics.epochs; run the recipe again")
        return self.obeyed(f"the loss and the time of each of {len(epochs)} epochs are kept")


def _mixed(metric: MetricView) -> str:
    """Return which launches of a metric name one process; an empty text when each names its own."""
    processes = [launch.process for launch in metric.launches if launch.process is not None]
    twice = sorted({process for process in processes if processes.count(process) > 1})
    if not twice:
        return ""
    return f"several launches of {metric.name} are of process {twice[0]}; a launch holds all samples of its process"
