"""Every metric of a tap in one list; those of the sidecar that is in it stand beside them.

No label holds a tenant, a request or an engine.
"""

from exporters.collector import Read
from exporters.tap_state import TapState

TAP: tuple[Read[TapState], ...] = (
    Read(
        "bleedwatch_tap_requests_total",
        "counter",
        "Requests that generate, seen or not.",
        lambda state: {(): state.watched},
    ),
    Read(
        "bleedwatch_tap_kept_total",
        "counter",
        "Requests whose ids went on to be sent.",
        lambda state: {(): state.kept},
    ),
    Read(
        "bleedwatch_tap_blind_total",
        "counter",
        "Requests that could not be seen, or not whole, by cause.",
        lambda state: {(cause,): count for cause, count in state.blind.items()},
        ("cause",),
    ),
    Read(
        "bleedwatch_tap_passed_total",
        "counter",
        "Other requests, passed as they came.",
        lambda state: {(): state.passed},
    ),
    Read(
        "bleedwatch_tap_upgraded_total",
        "counter",
        "Connections that became something else than HTTP.",
        lambda state: {(): state.upgraded},
    ),
    Read(
        "bleedwatch_tap_cut_total",
        "counter",
        "Requests whose client went away.",
        lambda state: {(): state.cut},
    ),
    Read(
        "bleedwatch_tap_engine_errors_total",
        "counter",
        "Requests that the engine did not answer, or not whole.",
        lambda state: {(reason,): count for reason, count in state.engine_errors.items()},
        ("reason",),
    ),
    Read(
        "bleedwatch_tap_in_flight",
        "gauge",
        "Requests under way.",
        lambda state: {(): state.in_flight},
    ),
    Read(
        "bleedwatch_tap_held_bytes",
        "gauge",
        "Bytes of bodies, answers and ids that are held.",
        lambda state: {(): state.held_bytes},
    ),
    Read(
        "bleedwatch_tap_waiting_bytes",
        "gauge",
        "Bytes of finished requests that wait to be hashed.",
        lambda state: {(): state.waiting_bytes},
    ),
    Read(
        "bleedwatch_tap_restarts_total",
        "counter",
        "Times that watching ended and was begun again, while requests passed on.",
        lambda state: {(): state.restarts},
    ),
)
