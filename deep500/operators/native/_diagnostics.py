"""From what a compiler says to a message that begins at the author's own line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from deep500.core.errors import CompileError

__all__ = ["compile_error"]

#: An error of GNU's or clang's compiler (``file:12:5: error: text``), or of nvcc (``file(12): error: text``).
_ERROR = re.compile(r"^(?P<file>[^\s:(][^:(]*)[:(](?P<line>\d+)(?:[):]\d*)*:?\s*(?:fatal )?error:?\s*(?P<text>.*)$")

#: A place in a file, in a line that says how the compiler came to an error.
_PLACE = re.compile(r"(?P<file>[^\s:(\"]+)[:(](?P<line>\d+)|line (?P<line_of>\d+) of (?P<of_file>\S+)")

#: An error of the linker: no place in a source.
_LINK_ERROR = re.compile(r"(undefined reference to .*|multiple definition of .*|cannot find -l\S+.*)")

#: Longest output that a message repeats, in characters; all of it is in ``CompileError.output``.
_LONGEST = 6000


def compile_error(name: str, sources: Sequence[Path], command: Sequence[str], output: str) -> CompileError:
    """Return the error for an operator that did not compile.

    Args:
        name: Name of the operator.
        sources: The author's sources.
        command: The command that failed.
        output: What the compiler said.
    """
    shown = output if len(output) <= _LONGEST else output[:_LONGEST] + "\n[...]"
    return CompileError(
        f"The operator {name!r} did not compile: {_headline(sources, output)}\n\n{shown.strip()}\n\n"
        f"Command: {shlex.join(command)}",
        command,
        output,
    )


def _headline(sources: Sequence[Path], output: str) -> str:
    """Return the first error with the line of the author's source that led to it."""
    lines = output.splitlines()
    for index, line in enumerate(lines):
        found = _ERROR.match(line)
        if found:
            place = _authors_place(sources, lines, index)
            return f"{place or Path(found['file']).name + ':' + found['line']}: {_plain(found['text'])}"
    for line in lines:
        link = _LINK_ERROR.search(line)
        if link:
            return f"linking failed: {link[1]}"
    return lines[0] if lines else "the compiler said nothing"


def _says_only_who_includes(line: str) -> bool:
    return line.lstrip().startswith(("In file included from", "from "))


def _plain(text: str) -> str:
    """Return a message without the compiler's words around a text of a static assertion."""
    found = re.match(r'static[ _]assert(?:ion)? failed(?: with|:| due to requirement .*?:)?\s*"?(.*?)"?$', text)
    return found[1] if found else text


def _authors_place(sources: Sequence[Path], lines: Sequence[str], index: int) -> str | None:
    """Return the place nearest to an error that is in one of the sources: of it, or of how the compiler came to it."""
    names = {str(source): source.name for source in sources}
    after = index + 1
    while after < len(lines) and not _ERROR.match(lines[after]):
        after += 1
    before = index
    while before > 0 and not _ERROR.match(lines[before - 1]):
        before -= 1
    around = [lines[index], *reversed(lines[before:index]), *lines[index + 1 : after]]
    for line in sorted(around, key=_says_only_who_includes):
        for place in _PLACE.finditer(line):
            file, number = place["file"] or place["of_file"], place["line"] or place["line_of"]
            if file in names:
                return f"{names[file]}:{number}"
    return None
