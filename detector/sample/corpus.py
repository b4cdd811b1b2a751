"""Collects passages of prose, code and comments from the running Python's standard library.

Nothing is copied or cached: the sources are read where they lie, so the text, and with it the
sample traffic, is the same for one Python release and may differ between releases.
"""

import ast
import enum
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from detector.errors import InputError

_NAMES = """
asyncio.events asyncio.locks asyncio.queues asyncio.streams asyncio.tasks base64 bdb bisect
calendar cmd code codecs collections concurrent.futures._base configparser contextlib copy csv
difflib dis email.message email.utils filecmp fileinput fnmatch fractions ftplib functools gzip
heapq http.client http.cookies http.server ipaddress json.decoder json.encoder logging mimetypes
netrc numbers optparse pkgutil platform poplib posixpath pprint profile queue random sched
selectors shelve shutil smtplib socket socketserver statistics tempfile textwrap threading timeit
traceback types urllib.parse uuid wave wsgiref.handlers xml.etree.ElementTree xmlrpc.client
"""

MODULES = tuple(_NAMES.split())
"""Modules of every Python >= 3.11 with long docstrings; none that Debian packages apart."""

MIN_MODULES = 50
"""Fewer than this and the traffic would repeat itself: a stripped or zipped library."""

MIN_CHARS = 160
MAX_CHARS = 1400
"""Shortest and longest passage; a longer docstring is cut at blank lines, longer code at lines."""

MIN_COMMENT_LINES = 4

MAX_CODE_PASSAGES = 16
"""Functions taken of one module, the first ones: prose and code then weigh about the same."""

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class PassageKind(enum.StrEnum):
    """What a passage is: prose of a docstring, source of a function, a block comment."""

    PROSE = "prose"
    CODE = "code"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of text of `MIN_CHARS` to `MAX_CHARS` characters."""

    kind: PassageKind
    text: str


def collect(library: Path | None = None) -> tuple[Passage, ...]:
    """Return all passages of `MODULES` in a fixed order, without duplicates.

    `library` is the folder of the standard library, by default the running Python's.
    Raises InputError when fewer than `MIN_MODULES` of the modules are there as source files.
    """
    folder = library or Path(sysconfig.get_path("stdlib"))
    sources = [source for name in MODULES if (source := _source(folder, name)) is not None]
    if len(sources) < MIN_MODULES:
        raise InputError(
            f"sample traffic needs the standard library's sources, found {len(sources)} of "
            f"{len(MODULES)} modules",
            where=str(folder),
            hint="install a full Python, not one with a zipped or source-free library",
        )
    unique = dict.fromkeys(passage for source in sources for passage in _passages(source))
    return tuple(passage for passage in unique if len(passage.text) >= MIN_CHARS)


def _source(folder: Path, module: str) -> str | None:
    stem = folder.joinpath(*module.split("."))
    for path in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    return None


def _passages(source: str) -> Iterator[Passage]:
    """Docstrings, functions without theirs, and comments; nothing is covered twice."""
    try:
        module = ast.parse(source)
    except SyntaxError:
        return
    lines = source.splitlines()
    code: list[Passage] = []
    for node in _documented(module):
        for part in _split(ast.get_docstring(node) or "", "\n\n"):
            yield Passage(PassageKind.PROSE, part)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            code.extend(
                Passage(PassageKind.CODE, part) for part in _split(_body(node, lines), "\n")
            )
    yield from [passage for passage in code if len(passage.text) >= MIN_CHARS][:MAX_CODE_PASSAGES]
    for comment in _comments(lines):
        for part in _split(comment, "\n"):
            yield Passage(PassageKind.COMMENT, part)


def _documented(module: ast.Module) -> Iterator[_Documented]:
    """Yield the module, its classes, functions and methods; a nested one belongs to its owner."""
    yield module
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield node
            for child in node.body:
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield child


def _body(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str:
    """Return the function's source at the left margin, its docstring left out."""
    last = node.end_lineno or node.lineno
    kept = list(range(node.lineno, last + 1))
    if ast.get_docstring(node, clean=False) is not None:
        doc = node.body[0]
        hidden = range(doc.lineno, (doc.end_lineno or doc.lineno) + 1)
        kept = [number for number in kept if number not in hidden]
    return "\n".join(lines[number - 1][node.col_offset :].rstrip() for number in kept)


def _comments(lines: list[str]) -> Iterator[str]:
    """Blocks of comment lines at the left margin, as prose; rulers are dropped."""
    block: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("#"):
            block.append(line.lstrip("#").strip().strip("-=#* "))
            continue
        if len(block) >= MIN_COMMENT_LINES:
            yield "\n".join(block).strip()
        block = []


def _split(text: str, separator: str) -> Iterator[str]:
    """Cut at `separator` into pieces of at most `MAX_CHARS`; a piece too long is cut short."""
    piece = ""
    for part in text.split(separator):
        if piece and len(piece) + len(separator) + len(part) > MAX_CHARS:
            yield piece
            piece = part[:MAX_CHARS]
        else:
            piece = f"{piece}{separator}{part}"[:MAX_CHARS] if piece else part[:MAX_CHARS]
    if piece:
        yield piece
