from __future__ import annotations

from deep500.networks.plain_table import plain_table


def test_columns_indentation_and_names_that_look_like_markup() -> None:
    lines = plain_table(("Name", "Size"), [("[red]a[/red]", "1"), ("  inner\nname", "1,000")], right=("Size",))

    assert lines == [
        "Name            Size",
        "────────────────────",
        "[red]a[/red]       1",
        "  inner name   1,000",
    ]
