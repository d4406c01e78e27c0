from __future__ import annotations

import importlib.util
import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError, MissingDependencyError
from deep500.core.requirement import Requirement
from deep500.datasets import _video
from deep500.datasets._video import spread
from deep500.datasets.loading import load_dataset
from tests.dataset_files import frames_of, ucf101_names, write_ucf101_frames, write_ucf101_lists, write_ucf101_videos

HAS_PYAV = importlib.util.find_spec("av") is not None


def brightness(values: Any) -> Any:
    return values.reshape(*values.shape[:-3], -1).mean(axis=-1)


def test_frames_are_spread_evenly() -> None:
    assert spread(12, 4).tolist() == [1, 4, 7, 10]
    assert spread(3, 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert spread(1, 2).tolist() == [0, 0]
    assert spread(100, 1).tolist() == [50]


def test_folders_of_frames(tmp_path: Path) -> None:
    write_ucf101_frames(tmp_path)
    train, test = load_dataset("ucf101", "x", "y", folder=tmp_path, size=32, frames=4, normalize=False)

    assert (len(train), len(test), train.classes, train.sample_shape) == (6, 6, 3, (4, 3, 32, 32))
    assert train[:]["y"].tolist() == [0, 0, 1, 1, 2, 2]
    # Frames 1, 4, 7 and 10, although "frame10" comes before "frame2" as a text.
    expected = [frames_of(ucf101_names(2)[0][0], 12)[number].mean() / 255 for number in (1, 4, 7, 10)]
    np.testing.assert_allclose(brightness(train[0]["x"]), expected, atol=0.02)


@pytest.mark.skipif(not HAS_PYAV, reason="PyAV is not installed")
@pytest.mark.parametrize("flat", [False, True])
def test_videos(tmp_path: Path, flat: bool) -> None:
    write_ucf101_videos(tmp_path, 1)
    root = tmp_path / "ucf101" / "UCF-101"
    if flat:
        for path in root.glob("*/*.avi"):
            shutil.move(path, root / path.name)
    train, _ = load_dataset("ucf101", folder=tmp_path, size=32, frames=4, normalize=False)

    expected = [frames_of(ucf101_names(1)[0][1], 12)[number].mean() / 255 for number in (1, 4, 7, 10)]
    np.testing.assert_allclose(brightness(train[1]["input"]), expected, atol=0.03)
    first = next(root.rglob("*.avi"))
    whole = first.read_bytes()
    for size in (0, 100):
        for path in root.rglob("*.avi"):
            path.write_bytes(whole[:size])
        with pytest.raises(DatasetError, match=r"\.avi (cannot be decoded|holds no)"):
            train[0]


def test_videos_need_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ucf101_lists(tmp_path)
    for name in itertools.chain(*ucf101_names(2)):
        path = tmp_path / "ucf101" / "UCF-101" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"RIFF")
    monkeypatch.setattr(_video, "PYAV", Requirement("no_such_library", "video", ()))
    train, _ = load_dataset("ucf101", folder=tmp_path)

    with pytest.raises(MissingDependencyError, match=r"v_ApplyEyeMakeup.*deep500\[video\]"):
        train[0]


def test_lists_in_the_published_archive_and_without_it(tmp_path: Path) -> None:
    write_ucf101_frames(tmp_path, archive=True)
    with pytest.raises(DatasetError, match="is not there") as caught:
        load_dataset("ucf101", folder=tmp_path / "ucf101" / "UCF-101")
    assert "5c0d1a53b8ed364a2ac830a73f405e51bece7d98ce1254fd19ed4a36b224bd27" in str(caught.value)

    assert len(load_dataset("ucf101", folder=tmp_path, size=32)[0]) == 6

    archive = tmp_path / "ucf101" / "UCF101TrainTestSplits-RecognitionTask.zip"
    archive.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(DatasetError, match="cannot be read"):
        load_dataset("ucf101", folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("classInd.txt", "1 A\n3 B\n", "numbers from 1 on"),
        ("classInd.txt", "", "numbers from 1 on"),
        ("trainlist01.txt", "ApplyEyeMakeup/v_a.avi 2\n", "gives ApplyEyeMakeup/v_a.avi the class 2"),
        ("trainlist01.txt", "../v_a.avi 1\n", "has the line '../v_a.avi 1'"),
        ("trainlist01.txt", "/etc/v_a.avi 1\n", "has the line"),
        ("trainlist01.txt", "Unknown/v_a.avi 1\n", "has the line"),
        ("trainlist01.txt", "\n", "names no videos"),
        ("testlist01.txt", "YoYo/v_gone.avi\n", "lacks YoYo/v_gone"),
    ],
)
def test_lists_that_are_wrong(tmp_path: Path, name: str, content: str, message: str) -> None:
    write_ucf101_frames(tmp_path)
    (tmp_path / "ucf101" / "ucfTrainTestlist" / name).write_text(content)

    with pytest.raises(DatasetError, match=message):
        load_dataset("ucf101", folder=tmp_path)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    write_ucf101_lists(tmp_path)
    with pytest.raises(DatasetError, match=r"UCF101 is not there.*UCF101\.rar"):
        load_dataset("ucf101", folder=tmp_path)
    with pytest.raises(DatasetError, match=r"lacks trainlist02\.txt, testlist02\.txt"):
        load_dataset("ucf101", folder=tmp_path, split=2)
    write_ucf101_frames(tmp_path)
    train, _ = load_dataset("ucf101", folder=tmp_path, size=32)
    for path in (tmp_path / "ucf101" / "UCF-101" / ucf101_names(2)[0][0].removesuffix(".avi")).iterdir():
        path.unlink()
    with pytest.raises(DatasetError, match="holds no frames"):
        train[0]
    for arguments in ({"split": 4}, {"frames": 0}, {"normalize": 1}):
        with pytest.raises(DatasetError, match=next(iter(arguments))):
            load_dataset("ucf101", folder=tmp_path, **arguments)
