"""What a comparison of executors found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["NodeComparison", "TensorComparison", "ValidationReport"]

#: So many rows of a table are shown; the others can be asked for.
_MOST_ROWS = 12


@dataclass(frozen=True)
class TensorComparison:
    """One tensor of one executor against the reference's.

    Attributes:
        framework: The executor's framework.
        what: The tensor: ``"output 'y'"``, ``"gradient of 'w'"``.
        error: The largest absolute difference, NaN where one is NaN and the other is not.
        scale: The largest absolute value of the reference.
        allowed: What was allowed of ``error``.
        problem: Why there was nothing to compare, or what differs beside the values (shape, dtype).
    """

    framework: str
    what: str
    error: float = 0.0
    scale: float = 0.0
    allowed: float = 0.0
    problem: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the difference is within what is allowed."""
        return not self.problem and self.error <= self.allowed

    @property
    def relative(self) -> float:
        """The difference relative to the largest value."""
        return self.error / self.scale if self.scale else self.error

    def __str__(self) -> str:
        """Return the comparison as a phrase."""
        if self.problem:
            return f"{self.what}: {self.problem}"
        return f"{self.what} differs by {self.error:.3g} of {self.scale:.3g}; allowed is {self.allowed:.3g}"


@dataclass(frozen=True)
class NodeComparison:
    """One node of one executor against the reference's, both given the same inputs.

    Attributes:
        framework: The executor's framework.
        node: The node's name.
        operator: Its operator.
        index: Its number in the network's order.
        tensors: Its outputs and the gradients by its inputs.
        note: Why it was not compared alone.
    """

    framework: str
    node: str
    operator: str
    index: int
    tensors: tuple[TensorComparison, ...] = ()
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether everything that was compared is within what is allowed."""
        return all(tensor.agrees for tensor in self.tensors)


@dataclass(frozen=True)
class ValidationReport:
    """What :func:`~deep500.networks.validation.ladder.validate` found.

    Attributes:
        network: Name of the network.
        reference: The framework with which the others were compared.
        frameworks: The others.
        outputs: The whole network: outputs, losses and gradients by the parameters.
        intermediates: Every tensor of the whole network, in its order.
        nodes: Every node alone.
        failures: Executors that could not run, with the reason, by framework.
        notes: What to know about the result.
    """

    network: str
    reference: str
    frameworks: tuple[str, ...]
    outputs: tuple[TensorComparison, ...] = ()
    intermediates: tuple[TensorComparison, ...] = ()
    nodes: tuple[NodeComparison, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether every executor ran and agrees."""
        return (
            not self.failures
            and all(tensor.agrees for tensor in self.outputs)
            and all(node.agrees for node in self.nodes)
        )

    def first_diverging(self, framework: str) -> NodeComparison | None:
        """Return the first node that differs although it is given the same inputs; ``None`` when all agree."""
        wrong = [node for node in self.nodes if node.framework == framework and not node.agrees]
        return min(wrong, key=lambda node: node.index, default=None)

    def first_parting(self, framework: str) -> TensorComparison | None:
        """Return the first tensor that differs in the whole network; ``None`` when all agree."""
        return next((t for t in self.intermediates if t.framework == framework and not t.agrees), None)

    def __str__(self) -> str:
        """Return the verdicts, and a table of what was compared."""
        title = f"Network {self.network!r} against {self.reference}: {'PASSED' if self.passed else 'FAILED'}"
        lines = [title]
        for framework in self.frameworks:
            lines += [f"  {framework}: {text}" for text in self._verdict(framework)]
        lines += [f"  note: {text}" for text in self.notes]
        return "\n".join(lines)

    def _verdict(self, framework: str) -> list[str]:
        for name, why in self.failures:
            if name == framework:
                return [f"could not run: {why}"]
        mine = [row for row in self.outputs if row.framework == framework]
        alone = [node for node in self.nodes if node.framework == framework]
        found = self.first_diverging(framework)
        if found is not None:
            wrong = [tensor for tensor in found.tensors if not tensor.agrees]
            first = f"the first diverging node is {found.node!r} ({found.operator}), number {found.index + 1}"
            return [first, *(f"  {tensor}" for tensor in wrong[:_MOST_ROWS])]
        apart = [row for row in mine if not row.agrees]
        if apart:
            parting = self.first_parting(framework)
            where = f"; they part at {parting}" if parting else ""
            return [f"every node alone agrees, and the network does not{where}", *_listed(apart)]
        worst = max(mine, key=lambda row: row.relative, default=None)
        skipped = sum(bool(node.note) for node in alone)
        text = f"{len(mine)} outputs and gradients and {len(alone) - skipped} nodes alone agree"
        text += f", {skipped} nodes were not run alone" if skipped else ""
        return [text + (f"; the largest difference is {worst.relative:.2g} ({worst.what})" if worst else "")]


def _listed(rows: Sequence[TensorComparison]) -> list[str]:
    more = [f"  and {len(rows) - _MOST_ROWS} more"] if len(rows) > _MOST_ROWS else []
    return [*(f"  {row}" for row in rows[:_MOST_ROWS]), *more]
