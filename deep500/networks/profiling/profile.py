"""Profiling: how long each node of a network takes alone, what it does in that time, and what that is of the whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from deep500.core.errors import Deep500Error, InvalidInputError, InvalidNetworkError
from deep500.core.random import check_seed
from deep500.core.texts import message_of, shown
from deep500.measure.metrics.peak_memory import PeakMemory
from deep500.measure.results.document import System
from deep500.measure.sampling.launch import run_launch
from deep500.measure.sampling.peaks import peaks_of
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.workload import Work, Workload
from deep500.networks.flops import node_flops
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode
from deep500.networks.profiling.report import Memory, NetworkProfile, NodeProfile
from deep500.networks.profiling.runs import NetworkRun, nothing_network
from deep500.networks.program import Program
from deep500.networks.random_inputs import random_inputs
from deep500.networks.validation._single_node import LOSS, is_floating, node_network, with_intermediates, with_values

__all__ = ["RATIO_HALF_WIDTH", "ExecutorFactory", "profile"]

#: ``from_model`` of an adapter, or anything that makes an executor of a network.
ExecutorFactory: TypeAlias = Callable[[Network], GraphExecutor]

#: Forward and the gradients by two operands: by convention three times the operations, and twice the bytes.
_GRADIENT_FLOPS, _GRADIENT_BYTES = 3, 2

#: The share of the whole network that a node takes is to be known to so much of itself.
RATIO_HALF_WIDTH = 0.05


def profile(
    network: Network,
    make_executor: ExecutorFactory,
    inputs: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    backprop: bool = False,
    loss: str | None = None,
    plan: SamplingPlan | None = None,
    measure_peak: bool = True,
    seed: int = 0,
    tell: Callable[[str], None] | None = None,
) -> NetworkProfile:
    """Time a whole network and every node of it alone, with the values that it has in the whole network.

    What is timed is what the executor runs: operators that the framework lacks are replaced by their definition, and
    what follows from constants is computed before. All are run in turn, in random order, on tensors that lie on the
    device; the first is the whole network. The intervals are within this process.

    Args:
        network: The network, in the mode in which it is to run.
        make_executor: Makes the executor, such as ``deep500.frameworks.pytorch.from_model``.
        inputs: A value for every input; random ones by default.
        sizes: Sizes of the random inputs, by symbol.
        backprop: Whether the gradient is computed too: of the network's loss by its parameters, of a node's outputs,
            weighted and summed, by its floating inputs.
        loss: Name of the scalar output that is differentiated; by default the network's loss.
        plan: How to sample.
        measure_peak: Whether to measure what this CPU reaches, which takes seconds.
        seed: Seed of random inputs, and of the order of runs.
        tell: Is told what is being done, a few words each time.

    Raises:
        InvalidInputError: An argument is not accepted, or there is no loss to differentiate.
        Deep500Error: The executor cannot run the network.
    """
    if not isinstance(network, Network):
        raise InvalidInputError(f"profile was given {shown(network)}; accepted is a Network (Network.load reads one).")
    if not callable(make_executor):
        raise InvalidInputError(
            f"profile was given the executor {shown(make_executor)}; accepted is a function that makes one of a "
            f"network, such as pytorch.from_model."
        )
    plan = SamplingPlan(ratio_half_width=RATIO_HALF_WIDTH) if plan is None else plan
    if not isinstance(plan, SamplingPlan):
        raise InvalidInputError(f"plan was given as {shown(plan)}; accepted is a SamplingPlan.")
    tell = tell or (lambda text: None)
    feeds = dict(random_inputs(network, sizes, check_seed(seed)) if inputs is None else inputs)
    loss = _checked_loss(network, loss) if backprop else None
    subject = _Subject(make_executor, feeds, loss, seed, tell)
    subject.run_whole(network)
    subject.find_values()
    subject.prepare_nodes()
    return subject.measured(plan, measure_peak)


def _checked_loss(network: Network, loss: str | None) -> str:
    found = next(iter(network.losses), None) if loss is None else loss
    if found is None:
        raise InvalidInputError(
            f"Network {network.name!r} has no loss to differentiate. Append one, with "
            f"network.append_loss('SoftmaxCrossEntropyLoss'), or name a scalar output as the loss."
        )
    return found


@dataclass
class _Subject:
    """A network that is being profiled."""

    make_executor: ExecutorFactory
    feeds: dict[str, Any]
    loss: str | None
    seed: int
    tell: Callable[[str], None]
    runs: list[Workload] = field(default_factory=list)
    rows: list[NodeProfile] = field(default_factory=list)
    timed: list[int] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def run_whole(self, network: Network) -> None:
        """Make the executor, and see how much memory a run takes."""
        self.tell("the whole network")
        executor = self.make_executor(network)
        run = NetworkRun("the whole network", executor, self.feeds, self.loss)
        metric = PeakMemory()
        metric.begin()
        run.run()
        run.synchronize()
        metric.end()
        before = metric.before_bytes
        self.memory = Memory(metric.samples[0], None if before is None else metric.samples[0] - before, metric.method)
        self.network = executor.network
        self.executor = executor
        self.runs.append(run)

    @property
    def program(self) -> Program:
        """What of the network runs."""
        return self.network.program(frozenset(self.feeds))

    def find_values(self) -> None:
        """Run the network once more, with every tensor between among its outputs."""
        self.tell("the tensors between")
        executor = self.make_executor(with_intermediates(self.network))
        results = executor.inference(self.feeds)
        stored = [*self.network.parameters, *self.network.states, *self.network.constants]
        self.values = dict(zip(stored, self.network.fetch_tensors(stored)))
        self.values |= {name: np.asarray(x) for name, x in self.feeds.items() if hasattr(x, "dtype")}
        self.values |= {name: executor.value_to_numpy(value) for name, value in results.items()}
        if self.loss is None:
            self.memory = dataclasses.replace(self.memory, live_bytes=_live_bytes(self.program, self.values))

    def prepare_nodes(self) -> None:
        """Make an executor of every node, and one of a network that does nothing, whose time is that of the call."""
        version = self.network.model.graph.opset_imports.get("", 23)
        nothing = self.make_executor(nothing_network(version))
        self.runs.append(NetworkRun("a call", nothing, {"x": np.zeros((), np.float32)}, None))
        nodes = self.program.nodes
        for index, node in enumerate(nodes):
            self.tell(f"node {index + 1} of {len(nodes)}: {node.name}")
            row = self._described(index, node)
            try:
                run, note = self._alone(node, row)
            except Deep500Error as error:
                row = dataclasses.replace(row, note=f"not timed: {message_of(error)}")
            else:
                row = dataclasses.replace(row, note=note, forward_only=bool(note))
                self.timed.append(index)
                self.runs.append(run)
            self.rows.append(row)

    def _described(self, index: int, node: OperatorNode) -> NodeProfile:
        own = {n: self.values[n] for n in (*node.inputs, *node.captured, *node.outputs) if n in self.values}
        own = {name: value for name, value in own.items() if isinstance(value, np.ndarray)}
        kinds = [
            f"{own[name].dtype.name}{list(own[name].shape)}" if name in own else "?" for name in node.outputs if name
        ]
        try:
            flops = node_flops(with_values(node, own))
        except InvalidNetworkError:
            flops = None
        moved = sum(value.nbytes for value in own.values() if value.dtype.kind not in "OUST")
        dtypes = [own[name].dtype.name for name in (*node.outputs, *node.inputs) if name in own]
        floating = [name for name in dtypes if name.startswith(("float", "bfloat", "complex"))]
        operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        dtype = [*floating, *dtypes, None][0]
        return NodeProfile(node.name, operator, index, ", ".join(kinds), dtype, flops, moved)

    def _alone(self, node: OperatorNode, row: NodeProfile) -> tuple[NetworkRun, str]:
        """Return what runs a node, and a note on what of it is not run."""
        work = Work(None, "item", row.flops, row.bytes, row.dtype)
        note = ""
        if self.loss is not None and any(is_floating(self.values.get(name)) for name in node.inputs):
            gradient = dataclasses.replace(
                work,
                flops=None if row.flops is None else _GRADIENT_FLOPS * row.flops,
                bytes=_GRADIENT_BYTES * (row.bytes or 0),
            )
            try:
                network, feeds = node_network(self.network, node, self.values, self.seed)
                return NetworkRun(node.label, self.make_executor(network), feeds, LOSS, gradient), ""
            except Deep500Error:
                note = "forward only: it has no gradient here"
        elif self.loss is not None:
            note = "forward only: nothing of it is floating"
        network, feeds = node_network(self.network, node, self.values)
        return NetworkRun(node.label, self.make_executor(network), feeds, None, work), note

    def measured(self, plan: SamplingPlan, measure_peak: bool) -> NetworkProfile:
        """Take the samples, and put all together."""
        openers = [(lambda run=run: run) for run in self.runs]
        launch = run_launch(
            openers,
            plan,
            seed=self.seed,
            fresh=False,
            environment=True,
            tell=lambda phase, samples, detail: self.tell(f"{phase}, {samples} samples"),
        )
        whole, call, *alone = (system.metrics[0] for system in launch.systems)
        for index, samples, system in zip(self.timed, alone, launch.systems[2:], strict=True):
            self.rows[index] = self._with_time(self.rows[index], samples, system)
        peaks: list[dict[str, Any]] = []
        if measure_peak:
            self.tell("what this machine reaches")
            peaks = peaks_of(launch.systems, plan.threads)
        return NetworkProfile(
            network=self.network.name,
            framework=self.executor.framework,
            device=str(self.executor.device),
            mode=self.network.mode,
            loss=self.loss,
            inputs={name: _form(value) for name, value in self.feeds.items()},
            whole=whole,
            call=call,
            nodes=tuple(self.rows),
            memory=self.memory,
            peaks=tuple(peaks),
            processes=(launch.process,),
            environment=launch.environment,
            plan=plan.to_dict(),
        )

    def _with_time(self, row: NodeProfile, samples: Any, system: System) -> NodeProfile:
        flops, moved = system.work.flops, system.work.bytes
        return dataclasses.replace(
            row,
            time=samples,
            flops=None if flops is None else int(flops),
            bytes=None if moved is None else int(moved),
        )


def _form(value: Any) -> str:
    """Return dtype and shape of an array."""
    return f"{np.dtype(value.dtype).name}{list(value.shape)}" if isinstance(value, np.ndarray) else shown(value)


def _live_bytes(program: Program, values: Mapping[str, Any]) -> int:
    """Return the most bytes of tensors that are needed at one time, where each is given back after its last use.

    What is stored counts throughout, and so does what is fed.
    """

    def size(name: str) -> int:
        value = values.get(name)
        return int(value.nbytes) if isinstance(value, np.ndarray) else 0

    last = {name: i for i, node in enumerate(program.nodes) for name in (*node.inputs, *node.captured) if name}
    last.update(dict.fromkeys(program.outputs, len(program.nodes)))
    always = {*program.inputs, *program.parameters, *program.states, *program.constants}
    live = most = sum(map(size, always))
    for index, node in enumerate(program.nodes):
        live += sum(map(size, filter(None, node.outputs)))
        most = max(most, live)
        done = {*node.inputs, *node.captured, *node.outputs} - {""} - always
        live -= sum(size(name) for name in done if last.get(name, index) == index)
    return most
