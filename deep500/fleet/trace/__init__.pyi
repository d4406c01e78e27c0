from .classic import ClassicView, classic_view
from .cox import CoxFit, fit_cox
from .generating import CauseHazard, Hazards, generate_trace
from .observed import ObservedTrace, observe
from .report import TraceReport, report_trace
from .survival import RiskTable, incidence, kaplan_meier, log_rank, risk_table

__all__ = [
    "CauseHazard",
    "ClassicView",
    "CoxFit",
    "Hazards",
    "ObservedTrace",
    "RiskTable",
    "TraceReport",
    "classic_view",
    "fit_cox",
    "generate_trace",
    "incidence",
    "kaplan_meier",
    "log_rank",
    "observe",
    "report_trace",
    "risk_table",
]
