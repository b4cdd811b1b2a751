"""The public incident at its real size: what was deployed, and what was asked of it in an hour.

A prefill pool smaller than the context, a larger decode pool, long documents of some tenants early
in the hour, and half an hour later a prompt of another one that prefill rejects and decode answers,
from pages that still hold the documents.
"""

from dataclasses import replace
from random import Random
from typing import Final

from detector.model import Role
from detector.sample.chatml import Message, messages_of, render
from detector.sample.language import Language
from detector.sample.traffic import SampleRequest, Traffic, TrafficSettings, generate
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.simulation import Topology
from tests.scenarios.catalog import Scenario

PREFILL_POOL: Final = 681_280
CONTEXT: Final = 1_048_576
DECODE_POOL: Final = 2_040_000

SCENARIO: Final = Scenario(
    topology=Topology(
        prefill_tokens=PREFILL_POOL,
        decode_tokens=DECODE_POOL,
        context_tokens=CONTEXT,
        newest_first=False,
        version="0.5.19",
        slow_share=0.0,
        bugs={Bug.STALE_AFTER_REJECT},
    ),
    over_long=1,
)
"""Free pages are handed out oldest first: what was said half an hour ago is what surfaces."""

IDLE_S: Final = 60.0
"""The deployment stands there for so long before anybody asks."""

DOCUMENTS: Final = 4
DOCUMENT_TOKENS: Final = 450_000
"""They leave a tenth of the decode pool unwritten; each is below the limit of prefill."""

EARLY: Final = 20
"""The documents come with some of the first requests, in five minutes."""

_HOUR: Final = TrafficSettings(engines=1, requests=240, duration_s=3_600.0, history_requests=400)


SEED: Final = 23
"""Not that of the simulation: two walks over one corpus with the same chances fall into step."""


def incident_traffic(language: Language) -> Traffic:
    """Return the traffic of the hour; the prompt that is too long comes half way through."""
    rng = Random(SEED)
    made = generate(rng, language, _HOUR)
    asker = made.requests[len(made.requests) // 2 - 1].tenant
    others = [one.request_id for one in made.requests[:EARLY] if one.tenant != asker]
    bring = others[:: len(others) // DOCUMENTS][:DOCUMENTS]
    requests = [
        _with_document(one, rng, language) if one.request_id in bring else one
        for one in made.requests
    ]
    later = tuple(
        replace(one, ts=one.ts + IDLE_S, ts_first=one.ts_first + IDLE_S, ts_end=one.ts_end + IDLE_S)
        for one in requests
    )
    lasting = replace(made.settings, duration_s=made.settings.duration_s + IDLE_S)
    return replace(made, requests=later, settings=lasting)


def _with_document(request: SampleRequest, rng: Random, language: Language) -> SampleRequest:
    """Put a document that nobody else has under the question of a request."""
    document = tuple(language.prose.write(rng, DOCUMENT_TOKENS))
    *before, last = messages_of(request.prompt_ids)
    asked = render([*before, Message(Role.USER, (*last.ids, *document))])
    return replace(request, prompt_ids=asked)
