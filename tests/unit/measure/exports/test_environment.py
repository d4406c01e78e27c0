from __future__ import annotations

from typing import Any

import pytest

from deep500.measure.exports._environment import environment_number, environment_text, environment_value
from tests.unit.measure.results.support import measurement


@pytest.mark.parametrize(
    ("name", "value", "text", "number"),
    [
        ("cpu.model", "Small CPU", "Small CPU", None),
        ("cpu.threads", 4, None, 4),
        ("cpu.frequency_current_mhz.median", 2300.0, None, 2300.0),
        ("cpu.governor", None, None, None),  # unavailable
        ("cpu.missing", None, None, None),
        ("mpi.launcher", None, None, None),  # the whole section is
        ("missing.field", None, None, None),
        ("cpu.model.deeper", None, None, None),
        ("libraries.versions.torch", None, None, None),
    ],
)
def test_field_is_read_in_the_type_that_is_needed(
    name: str, value: Any, text: str | None, number: float | None
) -> None:
    found = measurement()

    assert environment_value(found, name) == value
    assert environment_text(found, name) == text
    assert environment_number(found, name) == number


def test_measurement_without_a_record_has_no_fields() -> None:
    assert environment_value(measurement(environment={}), "cpu.model") is None
