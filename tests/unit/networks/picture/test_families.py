from __future__ import annotations

import onnx

from deep500.networks.picture.families import FAMILIES, family_of


def test_families_of_operators() -> None:
    assert family_of("Conv") == "convolution"
    assert family_of("LinearRegressor", "ai.onnx.ml") == "matrix product"
    assert family_of("Conv", "mine") == "other"
    assert family_of("Unheard") == "other"


def test_most_of_onnx_has_a_family_and_every_family_a_colour_of_its_own() -> None:
    names = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain and not schema.deprecated}
    without = {name for name in names if family_of(name) == "other"}

    assert len(without) < 35, sorted(without)
    assert {family_of(name) for name in names} == set(FAMILIES)
    assert len(set(FAMILIES.values())) == len(FAMILIES)
