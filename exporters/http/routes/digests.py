"""Routes of keyed digests: those of one finding, and those of all that were judged to be none."""

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query
from starlette.responses import Response

from exporters.http.answers import AllowListPage, told
from exporters.http.cursors import cursor as written
from exporters.http.cursors import place
from exporters.http.documented import answers
from exporters.http.fields import Id, Page
from exporters.http.parts import Parts
from exporters.http.problems import no_such
from exporters.store import digests
from exporters.store.digests import FindingDigests


class DigestPlace(NamedTuple):
    """Where a page of an allow-list ended."""

    finding: str


def digest_routes(parts: Parts) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["findings"])

    @router.get("/v1/findings/{finding_id}/digests", **answers(FindingDigests, 404))
    def digests_of(finding_id: Id) -> Response:
        """Give keyed digests of what was found: with the secret a text is compared with them."""
        with parts.database.read() as connection:
            found = digests.digests_of(connection, finding_id)
        if found is None:
            raise no_such("finding with digests")
        return told(found)

    @router.get("/v1/allow-list", **answers(AllowListPage))
    def allow_list(asked: Annotated[Page, Query()]) -> Response:
        """List the digests of findings that were judged to be no bleeds, for an allow-list."""
        after = place(asked.cursor, DigestPlace)
        with parts.database.read() as connection:
            found = digests.false_positives(
                connection, limit=asked.limit + 1, after="" if after is None else after.finding
            )
        return told(_page(found, asked.limit))

    return router


def _page(found: list[FindingDigests], limit: int) -> AllowListPage:
    if len(found) <= limit:
        return AllowListPage(found)
    return AllowListPage(found[:limit], written(DigestPlace(found[limit - 1].finding)))
