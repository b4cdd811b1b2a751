"""No command shows or stores a tenant's text, ids or hashes, or a key, whatever goes wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from detector.sample.scenario import demo_scenario
from tests.e2e.traffic import pairs, row
from tests.privacy.canary import IDS, TEXT
from tests.privacy.sandbox import Sandbox
from tests.privacy.sweep import Secrets, Sweep

Capture = pytest.CaptureFixture[bytes]


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.mark.parametrize("log", ["jsonl", "vllm", "sglang"])
def test_replay_as_a_process(box: Sandbox, log: str) -> None:
    path = getattr(box, log)
    assert Sweep(box.secrets()).file(path) >= {"text as utf-8", "ids as decimals"}
    options = ("--config", box.config, "--fail-on", "info", "--save", "findings.jsonl")
    box.run("replay", path, *options, "-o", "json", code=1)
    assert not box.sweep()


@pytest.mark.parametrize("form", ["table", "jsonl", "yaml"])
def test_replay_in_every_form_and_explain(box: Sandbox, capfdbinary: Capture, form: str) -> None:
    log, options = box.jsonl, ("--config", box.config, "--fail-on", "info", "-o", form)
    saved = ("--save", "findings.jsonl")
    box.call(capfdbinary, "replay", log, "--history", log, *options, code=1)
    box.call(capfdbinary, "replay", log, *options, *saved, code=1)
    name = json.loads((box.work / "findings.jsonl").read_text().splitlines()[0])["id"]
    box.call(capfdbinary, "explain", name, "--from", "findings.jsonl", "-o", form, code=0)
    assert not box.sweep()


def test_eval(box: Sandbox, capfdbinary: Capture) -> None:
    folder = box.labelled()
    options = ("--config", box.config)
    box.call(capfdbinary, "eval", folder, "--json", "eval.json", *options, code=0)
    assert json.loads((box.work / "eval.json").read_text())["requests"] > 0
    (folder / "truth.jsonl").write_text(json.dumps({"kind": TEXT, "ids": IDS}) + "\n")
    box.call(capfdbinary, "eval", folder, "--json", "broken.json", *options, code=2)
    assert not box.sweep()


def test_key_new(box: Sandbox, capfdbinary: Capture) -> None:
    made = box.given / "made.key"
    box.call(capfdbinary, "key", "new", made, code=0)
    box.call(capfdbinary, "key", "new", made, "-o", "json", code=2)
    written = made.read_text().strip()
    secret = (bytes.fromhex(written), written.encode(), written.upper().encode())
    assert not Sweep(Secrets(keys=secret)).tree(box.root, leave_out=[made])
    assert not box.sweep()


def test_demo(box: Sandbox, tmp_path: Path) -> None:
    scenario = demo_scenario(7, box.given / "demo")
    bled = [
        (request.prompt_ids if truth.source_field == "prompt" else request.response_ids)[
            truth.source_start : truth.source_end
        ]
        for truth in scenario.truth
        for request in scenario.requests
        if request.request_id == truth.source_request_id
    ]
    assert len(bled) == len(scenario.truth)
    box.run("demo", "--save", "findings.jsonl", "-o", "json", code=0)
    given = list(box.given.rglob("*"))
    assert not Sweep(Secrets(ids=bled)).tree(tmp_path, leave_out=given)
    assert not list((box.root / "tmp").iterdir())


BROKEN: dict[str, Callable[[Sandbox], bytes]] = {
    "cut lines": lambda box: b"\n".join(
        line[: len(line) * 2 // 3] for line in box.jsonl.read_bytes().splitlines()
    ),
    "text for ids": lambda _: changed(prompt_ids=[TEXT], response_ids=TEXT),
    "ids out of range": lambda _: changed(prompt_ids=[*IDS, 2**31, -1]),
    "huge ids": lambda _: changed(prompt_ids=[*IDS, 10**40]),
    "fractions": lambda _: changed(prompt_ids=[one + 0.5 for one in IDS]),
    "nested ids": lambda _: changed(prompt_ids=[list(IDS)]),
    "text for times": lambda _: changed(ts=TEXT, ts_end=list(IDS)),
    "no times": lambda _: changed(ts=None),
    "text for status": lambda _: changed(status=TEXT, gateway_cache_hit=list(IDS)),
    "not utf-8": lambda box: box.jsonl.read_bytes().replace(b'"prompt": "', b'"prompt": "\xff'),
    "utf-16": lambda box: box.jsonl.read_text().encode("utf-16"),
    "no json": lambda _: f"{TEXT} {IDS}\n".encode() * 9,
    "deep": lambda _: b'{"a":' * 5000 + TEXT.encode(),
    "vllm cut": lambda box: box.vllm.read_bytes().replace(b"], prompt_embeds", b", 5"),
    "vllm garbled": lambda box: box.vllm.read_bytes().replace(b"ids: [", b"ids: ["[:-1] + b"x"),
    "sglang cut": lambda box: box.sglang.read_bytes().replace(b'"meta_info"', b'"meta'),
    "sglang garbled": lambda box: box.sglang.read_bytes().replace(b'_ids": [', b'_ids": [["q",'),
    "broken zstd": lambda box: b"\x28\xb5\x2f\xfd" + box.jsonl.read_bytes(),
    "broken gzip": lambda box: b"\x1f\x8b\x08\x00" + box.jsonl.read_bytes(),
}


def changed(**fields: object) -> bytes:
    rows = [{**row(one, TEXT), **fields} for one in pairs(2, content=IDS)]
    return "".join(json.dumps(one) + "\n" for one in rows).encode()


@pytest.mark.parametrize("name", BROKEN)
def test_broken_input(box: Sandbox, capfdbinary: Capture, name: str) -> None:
    path = box.given / "broken.log"
    path.write_bytes(BROKEN[name](box))
    assert path.read_bytes() not in (one.read_bytes() for one in (box.jsonl, box.vllm, box.sglang))
    for form in ("table", "json"):
        box.call(capfdbinary, "replay", path, "--config", box.config, "-o", form, code=None)
    assert not box.sweep()


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "abcdef12", "--from", "{log}"),
        ("explain", "abcdef12", "--from", "{enum}"),
        ("replay", "{log}", "--config", "{log}"),
        ("replay", "{log}", "--config", "{enum}"),
        ("replay", "{log}", "--key-file", "{log}"),
        ("replay", "{log}", "--set", "detection.filter.allow_lists=[{log}]"),
        ("config", "check", "{log}"),
        ("eval", "{folder}"),
    ],
    ids=str,
)
def test_a_log_where_another_file_belongs(
    box: Sandbox, capfdbinary: Capture, arguments: tuple[str, ...]
) -> None:
    enum = box.given / "enum.jsonl"
    record = {"id": "abcdef12", "rule": TEXT, "severity": TEXT, "confidence": TEXT}
    enum.write_text(json.dumps(record) + "\n")
    places = {"log": str(box.jsonl), "enum": str(enum), "folder": str(box.given)}
    box.call(capfdbinary, *(word.format(**places) for word in arguments), code=2)
    assert not box.sweep()


FAULTS = {
    "reader": "ingest.sources.jsonl._milliseconds",
    "door": "ingest.door.checked_ids",
    "hashing": "detector.sketch.token_table.TokenTable.hash",
    "detector": "detector.pipeline.Detector.observe",
    "report": "detector.cli.report._summary",
}


@pytest.mark.parametrize("place", FAULTS.values(), ids=FAULTS)
def test_a_fault_of_ours_tells_no_data(
    box: Sandbox, capfdbinary: Capture, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise ValueError(f"{TEXT} {list(IDS)}", arguments, named)

    with monkeypatch.context() as patch:
        patch.setattr(place, fail)
        told = box.call(capfdbinary, "replay", box.jsonl, "--config", box.config, code=2)
    assert b"internal fault (ValueError)" in told
    assert not box.sweep()
