from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.compat.campaign import Campaign
from tests.unit.fleet.compat.support import campaign_of, cell


def test_written_and_read(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell(), cell(ranks=2, pip_options=("--no-index",)))
    assert Campaign.read(tmp_path / "campaign") == made
    with pytest.raises(FleetError, match="There is no campaign in"):
        Campaign.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "is no campaign of format 1"),
        ({"cells": [{}]}, "A cell cannot be read"),
        ({"cells": 3}, "(lacks the field|of a cell is|holds)"),
        ({"cells": [cell().to_dict()] * 2}, "is there twice"),
        ({"options": None}, "holds None as 'options'"),
        ({"options": {"jobs": 2}}, "a text of one line is needed"),
        ({"name": "a\x1b[31m"}, "a text of one line is needed"),
        ({"notes": ["\ud800"]}, "cannot be read"),
        ({"dropped": [5]}, "A dropped cell is 5"),
        ({"cells": [{**cell().to_dict(), "python": "three"}]}, "a version such as 3.11 is needed"),
        ({"cells": [{**cell().to_dict(), "timeout_s": -1}]}, "a number of seconds is needed"),
        ({"created": None}, "(lacks the field|of a cell is|holds)"),
        ({"cells": [{**cell().to_dict(), "version": "9.9"}]}, "was changed after it was planned"),
        ({"cells": [{**cell().to_dict(), "requirements": "rm"}]}, "a list of texts is needed"),
    ],
)
def test_faults_of_the_file(change: dict[str, object], message: str, tmp_path: Path) -> None:
    path = campaign_of(tmp_path, cell()).folder / "campaign.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(FleetError, match=message):
        Campaign.read(tmp_path / "campaign")
    path.write_text("{")
    with pytest.raises(FleetError, match="cannot be read"):
        Campaign.read(tmp_path / "campaign")


def test_prepared_cells_are_plain_files_and_attempts_are_kept(tmp_path: Path) -> None:
    tried = cell(pip_options=("--no-index", "--find-links /wheels"))
    made = campaign_of(tmp_path, tried)
    made.prepare([tried])
    folder = made.cell_folder(tried)
    assert (folder / "requirements.txt").read_text() == "--no-index\n--find-links /wheels\nfleetalpha==1.0\n"
    said = json.loads((folder / "cell.json").read_text())
    assert (said["campaign"], said["attempt"], said["gpus"]) == ("november", 1, 0)
    for number in (1, 2):
        (folder / "record.json").write_text(f"attempt {number}")
        made.prepare([tried])
    assert (folder / "attempts" / "2" / "record.json").read_text() == "attempt 2"
    assert not (folder / "record.json").exists()
    assert json.loads((folder / "cell.json").read_text())["attempt"] == 3


def test_the_copied_job_needs_nothing_but_python(tmp_path: Path) -> None:
    made = campaign_of(tmp_path, cell())
    made.prepare([cell()])
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(made.job_folder)!r})\n"
        "import cell_job, clock, environments, exchange, job_record, probe, processes\n"
        "assert not [name for name in sys.modules if name.startswith(('deep500', 'numpy'))]\n"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
    assert (made.job_folder / "probes" / "torch.py").exists()
    assert made.job_command(cell(), "python3.10", shared=False) == ["python3.10", "job/cell_job.py", "."]
