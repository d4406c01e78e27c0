from .document import (
    Design,
    LaunchSamples,
    Measurement,
    MetricSamples,
    ProcessRecord,
    Statistic,
    System,
    content_hash,
)

__all__ = [
    "Design",
    "LaunchSamples",
    "Measurement",
    "MetricSamples",
    "ProcessRecord",
    "Statistic",
    "System",
    "content_hash",
]
