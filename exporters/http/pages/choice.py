"""What the list of incidents is filtered by, as its form writes it into the address."""

from http import HTTPStatus
from urllib.parse import urlencode

from detector.finding import Severity
from exporters.http.fields import ListChoice
from exporters.http.problems import ProblemError
from exporters.incidents.model import ACTIVE, State
from exporters.store.incident_list import IncidentFilter

STATES = (
    ("active", "not resolved"),
    ("all", "any"),
    *((state.value, state.value) for state in State),
)
"""What the form offers; a list without a choice shows what is not resolved."""


def is_unfiltered(chosen: ListChoice) -> bool:
    """True if everything there is would be shown."""
    return chosen == ListChoice(state="all", cursor=chosen.cursor)


def wanted(chosen: ListChoice) -> IncidentFilter:
    """Return what the list is asked for; raises ProblemError for words that are none."""
    try:
        return IncidentFilter(
            states=_states(chosen.state),
            severity=Severity(chosen.severity) if chosen.severity else None,
            rule=chosen.rule or None,
            kv_pool=chosen.kv_pool or None,
            tenant=chosen.tenant or None,
        )
    except ValueError:
        detail = "the address asks for a state or severity that there is not"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "filter", detail) from None


def address(chosen: ListChoice, cursor: str) -> str:
    """Return the address of the page behind a cursor."""
    asked = chosen.model_dump(exclude={"cursor"})
    kept = {name: value for name, value in asked.items() if value}
    return f"/incidents?{urlencode({**kept, 'cursor': cursor})}"


def _states(word: str) -> tuple[State, ...]:
    if word == "all":
        return ()
    return tuple(sorted(ACTIVE)) if word in {"active", ""} else (State(word),)
