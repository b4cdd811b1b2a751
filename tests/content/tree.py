"""The files of the repository that the content tests look at."""

from pathlib import Path

ROOT = Path(__file__).parents[2]

CODE = ("detector", "ingest", "exporters")

_TEXT = {
    *(".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".json", ".ini", ""),
    *(".css", ".html", ".tpl", ".xml"),
}
_NOT_OURS = {".git", "build", "dist", "eval.json", "LICENSE"}
"""Also what `make eval` writes; .git is a file in a linked worktree."""


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below the folders of the repository, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def text_files() -> list[Path]:
    """Return every text file that belongs to the project, sorted."""
    return sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file() and path.suffix in _TEXT and not _left_out(path.relative_to(ROOT))
    )


def pages(folder: str) -> list[Path]:
    """Return a page of `docs` and those that it is continued on, in the folder of its name."""
    return [ROOT / "docs" / f"{folder}.md", *sorted((ROOT / "docs" / folder).rglob("*.md"))]


def name(path: Path) -> str:
    """Return the path as people write it: from the root of the repository."""
    return str(path.relative_to(ROOT))


def _left_out(path: Path) -> bool:
    return any(
        part in _NOT_OURS or part.endswith((".egg-info", "__pycache__")) for part in path.parts
    ) or any(part.startswith(".") and part != ".ci" for part in path.parts[:-1])
