"""The checklist as Markdown, and as a page of HTML that needs nothing else."""

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from detector.check.checklist import Item

TITLE: Final = "Safe by default: checklist"

_MARKS: Final = re.compile(r"([\\`*_{}\[\]<>#|])")

_STYLE: Final = (
    "body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
    "h2{font-size:1.1em;margin:1.5em 0 .3em}li{margin:.2em 0}"
    ".no{color:#a40000}.partly{color:#8a5a00}.yes{color:#1a6b1a}"
)


def markdown(items: Sequence[Item], *, made_at: str) -> str:
    """Return the checklist as Markdown; `made_at` is when, as RFC 3339."""
    lines = [f"# {TITLE}", "", f"Made {made_at}.", "", "| question | answer |", "|---|---|"]
    lines += [f"| {item.question} | **{item.answer.value}** |" for item in items]
    for item in items:
        lines += ["", f"## {item.question}", "", f"**{item.answer.value.capitalize()}.**", ""]
        lines += [f"- {_plain(line)}" for line in item.lines] or ["- not in use"]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Let no character of a text mean anything in Markdown."""
    return _MARKS.sub(r"\\\1", text)


def html(items: Sequence[Item], *, made_at: str) -> str:
    """Return the checklist as one page."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><meta charset="utf-8"><title>{TITLE}</title><style>{_STYLE}</style>',
        f"<h1>{TITLE}</h1><p>Made {escape(made_at)}.</p>",
    ]
    for item in items:
        name = item.answer.value.replace(" ", "-")
        lines = "".join(f"<li>{escape(line)}</li>" for line in item.lines)
        parts.append(
            f"<h2>{escape(item.question)}</h2>"
            f'<p class="{name}"><strong>{item.answer.value.capitalize()}.</strong></p>'
            f"<ul>{lines or '<li>not in use</li>'}</ul>"
        )
    return "\n".join([*parts, "</html>"]) + "\n"
