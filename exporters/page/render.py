"""Renders pages from templates: everything that is put into them is escaped."""

from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from detector.finding import Confidence, Severity
from detector.match.sentences import sentence
from exporters.page.alignment import alignment
from exporters.page.words import commands, instant, percent, words

_FILTERS: Final = {
    "instant": instant,
    "percent": percent,
    "words": words,
    "commands": commands,
    "sentence": sentence,
    "alignment": alignment,
}


class Pages:
    """The templates, compiled once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("exporters.page"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(_FILTERS)
        self._environment.globals.update(
            severities=[one.value for one in reversed(Severity)],
            confidences=[one.value for one in reversed(Confidence)],
        )

    def render(self, template: str, /, **context: Any) -> str:  # noqa: ANN401 - whatever a template shows
        """Return a page. A template that asks for what it was not given raises UndefinedError."""
        return self._environment.get_template(template).render(**context)
