from .input_report import InputReport, Problem, ProblemKind
from .outcome import STATUSES, Outcome
from .outcome_table import OutcomeTable
from .page import Page
from .reader import Reader
from .reading import READERS, read_outcomes

__all__ = [
    "READERS",
    "STATUSES",
    "InputReport",
    "Outcome",
    "OutcomeTable",
    "Page",
    "Problem",
    "ProblemKind",
    "Reader",
    "read_outcomes",
]
