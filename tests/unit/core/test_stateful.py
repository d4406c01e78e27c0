from __future__ import annotations

import pytest

from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.stateful import checkpoint_errors


@pytest.mark.parametrize("wrong", [KeyError("count"), TypeError("count"), ValueError("count"), AttributeError("count")])
def test_what_reading_another_form_raises_is_one_error(wrong: Exception) -> None:
    with pytest.raises(CheckpointError, match=r"the state of an optimizer.*count"), checkpoint_errors("an optimizer"):
        raise wrong


@pytest.mark.parametrize("right", [CheckpointError("other"), TrainingError("other"), OSError("other")])
def test_other_errors_stay(right: Exception) -> None:
    with pytest.raises(type(right), match=r"^other$"), checkpoint_errors("an optimizer"):
        raise right
