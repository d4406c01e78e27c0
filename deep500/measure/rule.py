"""The contract of a rule: whether a result document obeys it, with the reason; and the check of all rules."""

from __future__ import annotations

import abc
import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from deep500.core.errors import MeasurementError, PluginError
from deep500.core.registry import Registry
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of, shown_path
from deep500.measure.document_view import DocumentKind, DocumentView

__all__ = ["RULES", "Finding", "Rule", "RuleVerdict", "check_rules", "read_document"]

#: The rules, one file each in ``deep500/measure/rules``.
RULES = Registry("rule", "deep500.measure.rules")

#: So many reasons are told, of what is broken and of evidence; of further ones, the number.
_MOST_REASONS, _MOST_EVIDENCE = 3, 2


class RuleVerdict(str, enum.Enum):
    """What a rule says of a document."""

    OBEYED = "obeyed"
    BROKEN = "broken"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Finding:
    """What one rule says of a document.

    Attributes:
        rule: Name of the rule.
        number: Its number: ``"1"`` to ``"12"`` for the rules of SC15, ``"F1"`` and so on for those of deep learning.
        title: What it asks for, in one line.
        verdict: Whether the document obeys it.
        reason: Why: the evidence; what is wrong and what to do; or why the rule has nothing to say.
    """

    rule: str
    number: str
    title: str
    verdict: RuleVerdict
    reason: str

    def to_dict(self) -> dict[str, str]:
        """Return it for JSON."""
        return {
            "rule": self.rule,
            "number": self.number,
            "title": self.title,
            "verdict": self.verdict.value,
            "reason": self.reason,
        }


class Rule(abc.ABC):
    """Looks at a document and says whether it obeys one rule, as far as the document alone decides it.

    A subclass says ``number`` and ``title``, and overrides the method of each kind of document that it has something to
    say about. It gets a tolerant view, in which parts that are missing or of a wrong type are absent; it raises for no
    content.

    Attributes:
        number: ``"1"`` to ``"12"`` for the rules of SC15, ``"F1"`` and so on for those of deep learning.
        title: What it asks for, in one line.

    Example:
        >>> class Labelled(Rule):
        ...     number, title = "X1", "Every system has a label"
        ...     def measurement(self, document):
        ...         return self.judged([], [system.label for system in document.systems], "there are no systems")
    """

    number: ClassVar[str]
    title: ClassVar[str]

    def check(self, document: DocumentView | Mapping[str, Any]) -> Finding:
        """Return what the rule says of a document, or of the tolerant view of one.

        Raises:
            MeasurementError: It is no result document at all.
        """
        if not isinstance(document, DocumentView):
            document = _view_of(document)
        methods = {
            DocumentKind.MEASUREMENT: self.measurement,
            DocumentKind.COMPARISON: self.comparison,
            DocumentKind.RECIPE: self.recipe,
        }
        return methods[document.kind](document)

    def measurement(self, document: DocumentView) -> Finding:
        """Return what the rule says of a measurement: samples of systems."""
        return self.not_applicable("the rule is not about measurements")

    def comparison(self, document: DocumentView) -> Finding:
        """Return what the rule says of a comparison, which holds what was computed from measurements."""
        return self.not_applicable("lint the measurements that were compared")

    def recipe(self, document: DocumentView) -> Finding:
        """Return what the rule says of the result of a recipe: one training."""
        return self.not_applicable("the rule is not about single runs of recipes")

    def obeyed(self, evidence: str) -> Finding:
        """Return the finding that the rule is obeyed."""
        return self._finding(RuleVerdict.OBEYED, evidence)

    def broken(self, reason: str) -> Finding:
        """Return the finding that the rule is broken; the reason says what to do about it."""
        return self._finding(RuleVerdict.BROKEN, reason)

    def not_applicable(self, reason: str) -> Finding:
        """Return the finding that the rule has nothing to say."""
        return self._finding(RuleVerdict.NOT_APPLICABLE, reason)

    def judged(self, broken: Sequence[str], evidence: Sequence[str], otherwise: str) -> Finding:
        """Return the finding of many: broken when there is a reason for it, obeyed when there is evidence for that.

        Args:
            broken: What breaks the rule.
            evidence: What obeys it.
            otherwise: Why the rule is not applicable, when there is neither.
        """
        if broken:
            return self.broken(_told(broken, _MOST_REASONS))
        return self.obeyed(_told(evidence, _MOST_EVIDENCE)) if evidence else self.not_applicable(otherwise)

    def _finding(self, verdict: RuleVerdict, reason: str) -> Finding:
        name = type(self).__module__.rpartition(".")[2]
        return Finding(name, self.number, self.title, verdict, reason)


def check_rules(document: Mapping[str, Any]) -> list[Finding]:
    """Check a result document against all rules: the twelve of SC15, and those of deep learning.

    The document may come from elsewhere, or be edited by hand: what is missing or of a wrong type breaks the rules that
    need it.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15.

    Args:
        document: The content of a result file, as ``json.loads`` returns it.

    Returns:
        One finding a rule, in the order of their numbers.

    Raises:
        MeasurementError: It is no result document at all: no object, of no known kind, or of a newer version.
    """
    view = _view_of(document)
    findings = []
    for name in RULES:
        rule = RULES.get(name)
        if not (isinstance(rule, type) and issubclass(rule, Rule)):
            raise PluginError(f"The rule {name!r} is not a subclass of Rule.")
        findings.append(rule().check(view))
    return sorted(findings, key=lambda finding: _order(finding.number))


def read_document(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a result file without asking whether it is a valid one, which is for the rules to say.

    Raises:
        MeasurementError: There is no such file, or it holds no JSON object.
    """
    name = shown_path(path)
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise MeasurementError(f"{name} is no text in UTF-8, so it is no result of Deep500.") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise MeasurementError(f"{name} cannot be read: {reason}. Give the path of a result.") from error
    try:
        content = parse_json(text)
    except ValueError as error:
        raise MeasurementError(f"{name} is not valid JSON: {message_of(error)}. Give the path of a result.") from error
    if not isinstance(content, dict):
        raise MeasurementError(f"{name} holds no JSON object, so it is no result of Deep500.")
    return content


def _view_of(document: Any) -> DocumentView:
    from deep500.measure.rules._reading import view_of  # which is among the rules, that import this module

    return view_of(document)


def _told(reasons: Sequence[str], most: int) -> str:
    told = "; ".join(reasons[:most])
    more = len(reasons) - most
    return f"{told}; and {more} more" if more > 0 else told


def _order(number: str) -> tuple[str, int, str]:
    parts = re.fullmatch(r"([A-Za-z]*)(\d{1,9})", number)
    return (parts[1], int(parts[2]), "") if parts else (number, 0, number)
