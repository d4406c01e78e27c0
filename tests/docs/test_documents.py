"""The Python code shown in the documents runs, each document from top to bottom in one fresh process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def code_blocks(document: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if code_blocks(d)], ids=lambda d: d.name)
def test_code_of_a_document_runs(document, tmp_path):
    script = tmp_path / "document.py"
    script.write_text("\n".join(code_blocks(document)))
    finished = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_links_between_documents_lead_somewhere():
    broken = [
        f"{document.name}: {target}"
        for document in (*DOCUMENTS, ROOT / "CONTRIBUTING.md")
        for target in re.findall(r"\]\(([^)#]+)", document.read_text())
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert not broken


def test_the_commands_for_newcomers_are_one_line_each():
    text = (ROOT / "README.md").read_text()
    for heading in ("Quick start", "Tests"):
        block = re.search(rf"^## {heading}\n.*?^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        assert block is not None
        assert len(block[1].strip().splitlines()) == 1
