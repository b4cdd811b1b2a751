"""A problem as a page."""

from starlette.responses import HTMLResponse

from exporters.http.pages.views import templates
from exporters.http.problems import Problem


def error_page(told: Problem) -> HTMLResponse:
    """Return a page that tells a problem, with its status."""
    return HTMLResponse(templates().render("error.html", problem=told), status_code=told.status)
