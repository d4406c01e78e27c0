"""What a profile found: a row a node, totals, as a table, as JSON, and as colours of a picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deep500.core.errors import InvalidInputError
from deep500.core.quantities import scaled
from deep500.core.texts import escaped, shown
from deep500.measure.results.document import MetricSamples, ProcessRecord, metric_from_dict, plain
from deep500.measure.results.summary import Summary, summarise
from deep500.networks.plain_table import plain_table

__all__ = ["SORTS", "Memory", "NetworkProfile", "NodeProfile"]

#: What rows can be sorted by.
SORTS = ("time", "flops", "bytes", "order")

_TITLES = ("Node", "Operator", "Output", "Time", "Interval", "Share", "FLOPs", "Rate", "of peak", "Bytes", "Traffic")
_LAST_TITLE = "of peak "


@dataclass(frozen=True)
class Memory:
    """Memory of one run of the whole network, in bytes.

    Attributes:
        peak_bytes: The most that the process held, with all that was there before.
        added_bytes: How much of it came during the run; ``None`` where that is not known.
        method: How that was found.
        live_bytes: The most that its tensors need at one time when each is given back after its last use: a bound, not
            a measurement. ``None`` where the gradient is computed.
    """

    peak_bytes: int
    added_bytes: int | None
    method: str
    live_bytes: int | None = None


@dataclass(frozen=True)
class NodeProfile:
    """One node alone.

    Attributes:
        node: Its name.
        operator: Its operator, with the domain where that is not ONNX' own.
        index: Its number in the network's order.
        output: Dtypes and shapes of its outputs.
        dtype: Dtype of its arithmetic.
        flops: Floating-point operations of a run, counted; ``None`` where there is no rule for its operator.
        bytes: Bytes of all that it reads and writes: inputs, stored tensors, outputs.
        time: Its samples; ``None`` where it could not be timed.
        forward_only: Whether the gradient, which was asked for, is not in the time.
        note: What is special about it.
    """

    node: str
    operator: str
    index: int
    output: str
    dtype: str | None
    flops: int | None
    bytes: int | None
    time: MetricSamples | None = None
    forward_only: bool = False
    note: str = ""

    @property
    def summary(self) -> Summary | None:
        """Median and interval of its time."""
        return None if self.time is None else summarise(self.time)

    @property
    def seconds(self) -> float | None:
        """Median of its time."""
        summary = self.summary
        return None if summary is None else summary.estimate


@dataclass(frozen=True)
class NetworkProfile:
    """Times of a network and of every node alone.

    Attributes:
        network: The network's name.
        framework: Who ran it.
        device: Where.
        mode: ``"train"``, ``"eval"`` or ``"declared"``.
        loss: The loss whose gradient was computed; ``None`` for forward alone.
        inputs: Dtype and shape of what was fed.
        whole: Samples of the whole network.
        call: Samples of a network that does nothing: what a call of the executor costs, which is part of every time.
        nodes: The nodes, in the network's order.
        memory: Memory of one run of the whole network.
        peaks: What this machine reaches, by dtype (:class:`deep500.measure.Peak`), as JSON.
        processes: The processes that measured.
        environment: The environment record, as JSON.
        plan: How samples were taken, as JSON.
    """

    network: str
    framework: str
    device: str
    mode: str
    loss: str | None
    inputs: Mapping[str, str]
    whole: MetricSamples
    call: MetricSamples
    nodes: tuple[NodeProfile, ...]
    memory: Memory
    peaks: tuple[Mapping[str, Any], ...] = ()
    processes: tuple[ProcessRecord, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Median time of the whole network."""
        return summarise(self.whole).estimate

    @property
    def sum_seconds(self) -> float:
        """Sum of the nodes' median times: each has the cost of a call in it, and nothing is fused."""
        return sum(node.seconds or 0.0 for node in self.nodes)

    @property
    def flops(self) -> int | None:
        """Floating-point operations of all nodes; ``None`` when those of one are not known."""
        counts = [node.flops for node in self.nodes]
        return None if None in counts else sum(count or 0 for count in counts)

    def share(self, node: NodeProfile) -> float:
        """Return a node's share of the sum of all nodes' times, from 0 to 1."""
        total = self.sum_seconds
        return (node.seconds or 0.0) / total if total else 0.0

    def peak_shares(self, node: NodeProfile) -> tuple[float | None, float | None]:
        """Return which shares of this machine's arithmetic and of its memory's bandwidth a node reached.

        ``None`` where it has no time or no count, or the machine's peak in its dtype was not measured. Of the bandwidth
        more than 1 can be reached: it is that of the memory, and tensors may stay in a cache.
        """
        seconds = node.seconds
        if not seconds or not self.device.startswith("cpu"):
            return None, None
        own = [peak for peak in self.peaks if peak["dtype"] == node.dtype]
        compute = node.flops / seconds / own[0]["flops_per_s"] if own and node.flops else None
        traffic = node.bytes / seconds / self.peaks[0]["bytes_per_s"] if self.peaks and node.bytes else None
        return compute, traffic

    def sorted_nodes(self, sort: str = "time") -> list[NodeProfile]:
        """Return the nodes, the largest first, or in the network's order.

        Args:
            sort: One of :data:`SORTS`.

        Raises:
            InvalidInputError: It is none of these.
        """
        keys = {"time": "seconds", "flops": "flops", "bytes": "bytes", "order": None}
        if sort not in keys:
            raise InvalidInputError(f"sort was given as {shown(sort)}; accepted are {', '.join(SORTS)}.")
        key = keys[sort]
        return list(self.nodes) if key is None else sorted(self.nodes, key=lambda node: -(getattr(node, key) or 0))

    def table(self, sort: str = "time", top: int | None = None) -> str:
        """Return the profile as a text for people.

        Args:
            sort: What the rows are sorted by, one of :data:`SORTS`.
            top: How many rows are shown; all by default.
        """
        nodes = self.sorted_nodes(sort)
        shown_nodes = nodes if top is None else nodes[:top]
        rows = [self._row(node) for node in shown_nodes]
        lines = [self._head(), *(f"  {name}: {kind}" for name, kind in self.inputs.items()), ""]
        lines += plain_table((*_TITLES, _LAST_TITLE), rows, right=(*_TITLES[3:], _LAST_TITLE))
        if len(shown_nodes) < len(nodes):
            rest = sum(self.share(node) for node in nodes[len(shown_nodes) :])
            lines.append(f"and {len(nodes) - len(shown_nodes)} more, {rest:.1%} of the nodes' time")
        return "\n".join([*lines, "", *self._totals(), *self._notes()])

    def __str__(self) -> str:
        """Return the whole table, the slowest node first."""
        return self.table()

    def heat(self) -> dict[str, tuple[str, float]]:
        """Return for each node what a picture says of it, and how hot it is: its share over the largest."""
        largest = max((self.share(node) for node in self.nodes), default=0.0)
        found = {}
        for node in self.nodes:
            summary = node.summary
            if summary is not None and largest:
                text = f"{scaled('s', summary.estimate)[0]}, {self.share(node):.1%}"
                found[node.node] = (text, self.share(node) / largest)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, samples included, for JSON."""
        content: dict[str, Any] = {"schema_version": 1, "kind": "profile", **plain(self)}
        for entry, node in zip(content["nodes"], self.nodes):
            compute, traffic = self.peak_shares(node)
            entry["derived"] = {
                "time": _summary_dict(node.summary),
                "share": self.share(node),
                "share_of_peak_flops": compute,
                "share_of_peak_bandwidth": traffic,
            }
        content["derived"] = {
            "whole": _summary_dict(summarise(self.whole)),
            "call": _summary_dict(summarise(self.call)),
            "sum_of_nodes_s": self.sum_seconds,
            "flops": self.flops,
        }
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> NetworkProfile:
        """Return the profile of which :meth:`to_dict` made this."""
        names = {item.name for item in dataclasses.fields(cls)}
        given = {name: value for name, value in content.items() if name in names}
        nodes = []
        for entry in content["nodes"]:
            known = {name: value for name, value in entry.items() if name != "derived"}
            time = known["time"]
            nodes.append(NodeProfile(**{**known, "time": None if time is None else metric_from_dict(time)}))
        given |= {"nodes": tuple(nodes), "memory": Memory(**content["memory"]), "peaks": tuple(content["peaks"])}
        given |= {name: metric_from_dict(content[name]) for name in ("whole", "call")}
        return cls(**{**given, "processes": tuple(ProcessRecord(**process) for process in content["processes"])})

    @classmethod
    def joined(cls, profiles: Sequence[NetworkProfile]) -> NetworkProfile:
        """Return one profile of those of several processes: from six on, its intervals are over processes.

        Raises:
            InvalidInputError: There are none, or they are of different networks, frameworks, inputs or nodes.
        """
        if not profiles:
            raise InvalidInputError("There are no profiles to join.")
        first = profiles[0]
        for number, other in enumerate(profiles[1:], 2):
            for what in ("network", "framework", "device", "mode", "loss", "inputs"):
                if getattr(other, what) != getattr(first, what):
                    raise InvalidInputError(f"Profile {number} is not of what the first is: its {what} differs.")
            if [node.node for node in other.nodes] != [node.node for node in first.nodes]:
                raise InvalidInputError(f"Profile {number} is not of what the first is: its nodes differ.")
        nodes = []
        for rows in zip(*(profile.nodes for profile in profiles)):
            times = [row.time for row in rows if row.time is not None]
            nodes.append(dataclasses.replace(rows[0], time=_joined(times) if len(times) == len(rows) else None))
        return dataclasses.replace(
            first,
            whole=_joined([profile.whole for profile in profiles]),
            call=_joined([profile.call for profile in profiles]),
            nodes=tuple(nodes),
            memory=max((profile.memory for profile in profiles), key=lambda memory: memory.peak_bytes),
            peaks=next((profile.peaks for profile in profiles if profile.peaks), ()),
            processes=tuple(process for profile in profiles for process in profile.processes),
        )

    def _head(self) -> str:
        what = "inference" if self.loss is None else f"inference and gradient of {self.loss!r}"
        modes = {"train": "training mode", "eval": "evaluation mode", "declared": "the mode that each node declares"}
        return f"Network {escaped(self.network)!r} under {self.framework} on {self.device}: {what}, {modes[self.mode]}"

    def _row(self, node: NodeProfile) -> tuple[str, ...]:
        name, summary = escaped(" ".join(node.node.split())), node.summary
        head = (f"{name}{' *' if node.forward_only else ''}", node.operator, node.output)
        flops = "?" if node.flops is None else scaled("flop", node.flops)[0]
        moved = "?" if node.bytes is None else scaled("B", node.bytes)[0]
        if summary is None:
            return *head, "not timed", "", "", flops, "", "", moved, "", ""
        time, interval = _time_texts(summary)
        seconds = summary.estimate
        compute, traffic = self.peak_shares(node)
        rate = scaled("flop/s", node.flops / seconds)[0] if node.flops and seconds else ""
        speed = scaled("B/s", node.bytes / seconds)[0] if node.bytes and seconds else ""
        share = f"{self.share(node):.1%}"
        return *head, time, interval, share, flops, rate, _percent(compute), moved, speed, _percent(traffic)

    def _totals(self) -> Iterator[str]:
        whole, call = summarise(self.whole), summarise(self.call)
        time, interval = _time_texts(whole)
        yield f"Whole network: {time} ({interval or 'no interval'}); {whole.note}"
        total = self.sum_seconds
        ratio = f", {total / whole.estimate:.2f} times the whole network" if whole.estimate else ""
        yield (
            f"Sum of the nodes alone: {scaled('s', total)[0]}{ratio}. Each has in it what a call costs, "
            f"{scaled('s', call.estimate)[0]}; run as a whole, nodes may be fused, and be faster than their sum."
        )
        flops = self.flops
        if flops is not None:
            rate = f", {scaled('flop/s', flops / whole.estimate)[0]}" if whole.estimate else ""
            yield f"FLOPs: {scaled('flop', flops)[0]}{rate}"
        added = "" if self.memory.added_bytes is None else f", {_mebibytes(self.memory.added_bytes)} of it for the run"
        yield f"Peak memory of the process: {_mebibytes(self.memory.peak_bytes)}{added} ({self.memory.method})"
        if self.memory.live_bytes is not None:
            yield f"Tensors needed at one time at most: {_mebibytes(self.memory.live_bytes)} (counted, not measured)"
        for peak in self.peaks:
            (compute,), (traffic,) = scaled("flop/s", peak["flops_per_s"]), scaled("B/s", peak["bytes_per_s"])
            yield f"Peak: {compute} in {peak['dtype']}, {traffic}; {peak['how']}"

    def _notes(self) -> Iterator[str]:
        if self.loss is not None:
            yield (
                "Note: with a node's gradient come a weighted sum of its outputs, which is differentiated, three times "
                "its operations and twice its bytes, by convention."
            )
        if any(node.forward_only for node in self.nodes):
            yield "* Forward only: it has no gradient here."
        for node in self.nodes:
            if node.time is None:
                yield f"Note: {escaped(node.node)}: {node.note}"
        warnings = dict.fromkeys(warning for warning in summarise(self.whole).warnings)
        yield from (f"Note: {warning}" for warning in warnings)


def _joined(metrics: Sequence[MetricSamples]) -> MetricSamples:
    launches = [launch for metric in metrics for launch in metric.launches]
    numbered = tuple(dataclasses.replace(launch, process=number) for number, launch in enumerate(launches))
    return dataclasses.replace(metrics[0], launches=numbered)


def _summary_dict(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    interval = summary.interval
    return {
        "median_s": summary.estimate,
        "interval_s": None if interval is None else [interval.low, interval.high],
        "basis": summary.basis.value,
        "samples": summary.samples,
        "launches": summary.launches,
    }


def _time_texts(summary: Summary) -> tuple[str, str]:
    """Return a time, and its interval in the same unit, as texts."""
    if summary.interval is None:
        return scaled(summary.unit, summary.estimate)[0], ""
    value, low, high = scaled(summary.unit, summary.estimate, summary.interval.low, summary.interval.high)
    return value, f"{low} .. {high}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _mebibytes(size: float) -> str:
    return f"{size / 2**20:.1f} MiB"
