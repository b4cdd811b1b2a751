"""What every page needs: the templates, who is looking, and the token that forms bring back."""

from functools import cache
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from exporters.http.access import Access
from exporters.http.fields import caller
from exporters.page.render import Pages


@cache
def templates() -> Pages:
    """Return the templates of this process."""
    return Pages()


class Views:
    """Renders pages for whoever asks."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def page(self, request: Request, template: str, /, **context: Any) -> HTMLResponse:  # noqa: ANN401
        """Return a page."""
        who = caller(request)
        text = templates().render(
            template,
            user=who,
            form_token=self._access.sessions.form_token(who),
            **context,
        )
        return HTMLResponse(text, status_code=HTTPStatus.OK)
