"""Every rule: its id, what it is about, how grave it is by default, and how mature."""

from typing import Final, NamedTuple

from detector.finding import Severity


class Rule(NamedTuple):
    """One rule. Severity is the highest that it has by itself; runtime evidence may add a step.

    `stable` rules keep what they mean; `beta` ones may still change their thresholds.
    """

    title: str
    severity: Severity
    maturity: str


RULES: Final = {
    "BW001": Rule("foreign prompt in a response", Severity.HIGH, "stable"),
    "BW002": Rule("foreign response in a response", Severity.HIGH, "stable"),
    "BW003": Rule("whole response duplicated", Severity.HIGH, "stable"),
    "BW101": Rule("rejected request answered", Severity.HIGH, "beta"),
    "BW102": Rule("over-limit request answered", Severity.HIGH, "beta"),
    "BW103": Rule("reported prompt tokens far below what was sent", Severity.HIGH, "beta"),
    "BW104": Rule("request id reused across tenants", Severity.HIGH, "beta"),
    "BW105": Rule("block stored or reused across isolation", Severity.HIGH, "beta"),
    "BW201": Rule("unreleased KV memory", Severity.MEDIUM, "beta"),
    "BW202": Rule("clear failure", Severity.HIGH, "beta"),
    "BW203": Rule("KV metadata or checksum mismatch", Severity.HIGH, "beta"),
    "BW204": Rule("transfer failures", Severity.MEDIUM, "beta"),
    "BW205": Rule("pool pressure", Severity.MEDIUM, "beta"),
    "BW206": Rule("KV pool smaller than the context", Severity.MEDIUM, "beta"),
    "BW207": Rule("burst of degenerate output", Severity.MEDIUM, "beta"),
    "BW208": Rule("ownership ledger violated", Severity.HIGH, "beta"),
    "BW301": Rule("canary of a probe echoed", Severity.HIGH, "beta"),
    "BW401": Rule("configuration does not fit", Severity.MEDIUM, "beta"),
    "BW402": Rule("vulnerable engine version", Severity.MEDIUM, "beta"),
    "BW901": Rule("blind: something was not seen", Severity.MEDIUM, "beta"),
    "BW902": Rule("heartbeat", Severity.INFO, "beta"),
}
