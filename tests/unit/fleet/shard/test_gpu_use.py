from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from deep500.fleet.shard.gpu_use import USED_FILE_VARIABLE, Gpus, lack_of_gpus, say_used, used_by_processes


def refuse(needed: int) -> NoReturn:
    raise RuntimeError(f"needs {needed}")


def test_what_is_taken_is_recorded() -> None:
    gpus = Gpus(3, 2, refuse)
    assert gpus.take(1) == (0,)
    assert gpus.take() == (1,)  # as many as are declared, without the one that it has
    assert gpus.take() == ()
    assert gpus.take(1) == (2,)
    assert gpus.taken == (0, 1, 2)
    with pytest.raises(RuntimeError, match="needs 4"):
        gpus.take(1)
    assert gpus.taken == (0, 1, 2)
    with pytest.raises(ValueError, match="give a whole number from 0"):
        gpus.take(-1)
    for wrong in ("x", True, 1.5):
        with pytest.raises(ValueError, match="give a whole number from 0"):
            gpus.take(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="declares None"):
        Gpus(3, None, refuse).take()


def test_what_processes_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "used"
    monkeypatch.delenv(USED_FILE_VARIABLE, raising=False)
    say_used(0)
    assert used_by_processes(str(path)) == set()
    monkeypatch.setenv(USED_FILE_VARIABLE, str(path))
    say_used(0, 1)
    say_used("1", "GPU-x")
    assert used_by_processes(str(path)) == {"0", "1", "GPU-x"}
    assert lack_of_gpus(4, 2) == "needs 4 GPUs, 2 are given (--max-gpus)"
