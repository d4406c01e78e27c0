from __future__ import annotations

import pytest

from deep500.core.errors import InvalidNetworkError
from deep500.networks.importing import renamed


def test_names_are_replaced_where_others_are_given() -> None:
    assert renamed(["a", "b"], {"b": "c"}) == {"a": "a", "b": "c"}
    assert renamed(["a", "b"], None) == {"a": "a", "b": "b"}
    assert renamed(["a", "b"], {"a": "b", "b": "a"}) == {"a": "b", "b": "a"}


@pytest.mark.parametrize(
    ("names", "message"), [({"c": "d"}, "no input or output"), ({"a": "b"}, "one name to several")]
)
def test_bad_names_are_refused(names: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidNetworkError, match=message):
        renamed(["a", "b"], names)
