"""Every advisory is met by the versions and flags it is about, and by no others: one table."""

from typing import NamedTuple

import pytest
from packaging.version import Version

from detector.advisories.assess import Verdict, assess
from detector.advisories.deployment import deployment_of
from detector.advisories.load import FILES, advisories, check, features, text_of
from detector.advisories.versions import parse_version


class Row(NamedTuple):
    """An advisory, versions inside and outside, and what makes it apply and not apply.

    `outside` begins with the fix, where there is one. `flags` are given where it applies for
    certain, or as far as flags tell; `unless` are flags, or features that are not in use.
    """

    id: str
    program: str
    inside: tuple[str, ...]
    outside: tuple[str, ...]
    flags: str = ""
    undecided: tuple[str, ...] = ()
    unless: str = ""


ROWS = (
    Row("BWA-2026-0001", "sglang", ("0.4.6", "0.5.20", "0.5.20.post1", "0.5.21rc0"),
        ("0.5.21", "0.5.21.post1", "0.5.22rc1"), "--disaggregation-mode prefill",
        ("lower_prefill_limit",), "--port 30000"),
    Row("BWA-2026-0002", "sglang", ("0.5.18", "0.5.20", "0.5.20+cu128"), ("0.5.21", "0.5.22"),
        "--disaggregation-mode=decode --disaggregation-transfer-backend nixl",
        unless="--disaggregation-mode decode --disaggregation-transfer-backend ascend"),
    Row("CVE-2026-111392", "sglang", ("0.5.13", "0.5.13rc1", "0.5.21.post2"),
        ("0.5.22", "0.5.12.post1", "0.5.23"), "--enable-multimodal", ("open_generate",),
        "multimodal"),
    Row("CVE-2026-112266", "sglang", ("0.4.0", "0.5.23", "1.0"), (), "--port 1",
        ("client_request_ids",), "client_request_ids"),
    Row("BWA-2026-0003", "sglang", ("0.5.12", "0.5.12.post1", "0.5.13rc2"), ("0.5.13", "0.5.14"),
        "--disaggregation-decode-enable-offload-kvcache", unless="--disaggregation-mode decode"),
    Row("BWA-2026-0004", "sglang", ("0.5.18", "0.5.18rc0", "0.5.23"), ("0.5.17.post1",),
        "--enable-lmcache", ("cache_salts",), "--enable-lmcache=false"),
    Row("GHSA-v97p-wpxp-px84", "vllm", ("0.16.0", "0.16.0rc2", "0.20.2", "0.21.0rc1"),
        ("0.21.0", "0.15.1.post1"), "--async-scheduling -pp 2",
        unless="--async_scheduling --pipeline_parallel_size 1"),
    Row("GHSA-fpch-3xrf-7q96", "vllm", ("0.21.0", "0.27.1", "0.28.0rc3"), ("0.28.0", "0.20.9"),
        """--reasoning-config '{"reasoning_end_str": "</think>"}'""",
        unless="""--reasoning-config '{"reasoning_parser": "x"}'"""),
    Row("CVE-2026-114049", "vllm", ("0.6.0", "0.30.1.post1", "0.31.0rc1"), ("0.31.0", "0.33.0"),
        "--port 8000", ("allowed_tokens",), "allowed_tokens"),
    Row("CVE-2026-105755", "vllm", ("0.29.0", "0.30.0rc1.dev5+g1a2b3c"), ("0.30.0",), "--port 1",
        ("late_interaction",), "late_interaction"),
    Row("CVE-2026-105754", "vllm", ("0.29.0", "0.9.2"), ("0.30.0", "0.30.0.post1"), "--port 1",
        ("multimodal", "inference_endpoint"), "--language-model-only"),
    Row("CVE-2026-129356", "vllm", ("0.30.0", "0.31.0", "0.30.0rc1"), ("0.32.0", "0.29.0"),
        "--enable-prefix-caching", unless="--no-enable-prefix-caching"),
    Row("CVE-2026-53923", "vllm", ("0.5.5", "0.23.0", "0.23.1.dev3"), ("0.23.1rc0", "0.5.4"),
        "--quantization gguf", unless="gguf"),
    Row("CVE-2025-46722", "vllm", ("0.7.0", "0.8.5.post1"), ("0.9.0", "0.6.6"), "--port 1",
        ("multimodal",), "multimodal"),
    Row("CVE-2025-46570", "vllm", ("0.8.5", "0.9.0rc1"), ("0.9.0",), "--enable_prefix_caching",
        unless="--enable-prefix-caching False"),
    Row("CVE-2025-25183", "vllm", ("0.7.1", "0.2.0"), ("0.7.2",), "--enable-prefix-caching",
        unless="prefix_caching"),
    Row("CVE-2026-10813", "lmcache", ("0.5.0", "0.5.4.post1"), ("0.5.5", "0.4.9"), "--port 1",
        ("multimodal",), "multimodal"),
    Row("BWA-2026-0005", "lmcache", ("0.5.2", "0.6.0"), ("0.5.1",), "--port 1", ("local_disk",),
        "local_disk"),
    Row("CVE-2026-107206", "lmcache", ("0.5.5", "0.5.5.post1", "0.3.0"), ("0.5.6", "0.5.6rc1"),
        "--port 1", ("multi_process",), "multi_process"),
    Row("CVE-2026-89032", "litellm", ("1.100.9", "1.101.0.dev1"), ("1.101.0rc1", "1.101.0"),
        "--port 1", ("semantic_cache",), "semantic_cache"),
    Row("CVE-2026-24205", "tensorrt-llm", ("1.2.0", "1.2.1rc1", "1.0.0"), ("1.2.1", "1.3.0rc1")),
    Row("BWA-2026-0006", "tensorrt-llm", ("1.2.0rc0", "1.2.0rc1", "1.2.0rc1.post1"),
        ("1.2.0rc2", "1.2.0", "1.1.0"), "--port 1", ("host_offload",), "host_offload"),
    Row("CVE-2026-24229", "tensorrt-llm", ("1.2.1", "1.3.0rc16"), ("1.3.0rc17", "1.3.0"),
        "--port 1", ("disaggregation",), "disaggregation"),
    Row("CVE-2025-23320", "triton", ("25.06", "24.12"), ("25.07", "25.10"), "--port 1",
        ("python_backend",), "python_backend"),
    Row("BWA-2026-0007", "llama.cpp", ("b9747", "10241"), (), "--parallel 4",
        unless="--cache-ram 0 -np 4"),
)  # fmt: skip


def verdict(row: Row, version: str, *, flags: str | None, unused: str = "") -> Verdict:
    deployment = deployment_of(
        row.program, version, arguments=flags, unused=[unused] if unused else []
    )
    found = assess(advisories(), deployment, features())
    (one,) = (one for one in found if one.advisory.id == row.id)
    expected = row.undecided if one.verdict is Verdict.MAY_APPLY and flags else one.unknown
    assert one.unknown == expected
    assert str(deployment.version) in one.because or one.verdict is Verdict.NOT_APPLICABLE
    return one.verdict


def test_the_table_has_every_advisory() -> None:
    assert [row.id for row in ROWS] == [one.id for one in advisories()]
    for row, advisory in zip(ROWS, advisories(), strict=True):
        (affected,) = advisory.affected
        fixes = [event.fixed for one in affected.ranges for event in one.events if event.fixed]
        assert list(row.outside[: len(fixes)]) == fixes


def test_every_edge_of_every_range_is_tried_on_both_sides() -> None:
    """And whatever depends on the deployment is tried where it does not apply."""
    for row, advisory in zip(ROWS, advisories(), strict=True):
        (affected,) = advisory.affected
        inside = [known(version) for version in row.inside]
        outside = [known(version) for version in row.outside]
        for event in (event for one in affected.ranges for event in one.events):
            if event.introduced not in (None, "0"):
                edge = known(event.introduced)
                assert edge in inside
                assert any(version < edge for version in outside), row.id
            if event.fixed is not None:
                edge = known(event.fixed)
                assert edge in outside
                assert any(version < edge for version in inside), row.id
            if event.last_affected is not None:
                edge = known(event.last_affected)
                assert edge in inside
                assert any(version > edge for version in outside), row.id
        assert bool(row.unless) == bool(affected.database_specific.applies_when), row.id


def known(version: str) -> Version:
    parsed = parse_version(version)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_affected_versions(row: Row) -> None:
    certain = Verdict.MAY_APPLY if row.undecided else Verdict.APPLIES
    assert {verdict(row, version, flags=row.flags) for version in row.inside} == {certain}
    unknown = Verdict.MAY_APPLY if row.unless else Verdict.APPLIES
    assert {verdict(row, version, flags=None) for version in row.inside} == {unknown}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_fix_and_what_lies_just_outside(row: Row) -> None:
    seen = {verdict(row, version, flags=row.flags) for version in row.outside}
    assert seen <= {Verdict.NOT_AFFECTED}


@pytest.mark.parametrize("row", [row for row in ROWS if row.unless], ids=lambda row: row.id)
def test_what_it_does_not_apply_to(row: Row) -> None:
    given = {"flags": row.unless} if row.unless.startswith("-") else {"flags": "--port 1"}
    unused = "" if row.unless.startswith("-") else row.unless
    assert verdict(row, row.inside[0], unused=unused, **given) is Verdict.NOT_APPLICABLE


def test_other_programs_are_not_concerned() -> None:
    for row in ROWS:
        other = "litellm" if row.program == "vllm" else "vllm"
        found = assess(advisories(), deployment_of(other, row.inside[0]), features())
        assert row.id not in {one.advisory.id for one in found}


def test_the_files_are_sound_and_every_feature_is_asked_for() -> None:
    assert check((name, text_of(name)) for name in FILES) == []
    asked = {
        (affected.package.name, word)
        for one in advisories()
        for affected in one.affected
        for word in affected.database_specific.applies_when
    }
    assert asked == {(program, word) for program, words in features().items() for word in words}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("id: CVE-2026-24205", "id: cve-1"), "matching regex"),
        (("- id: CVE-2026-24205", "- name: CVE-2026-24205"), "unknown field `name`"),
        (('"1.2.1"', '"1.2.1-final"'), "no version of PEP 440: 1.2.1-final"),
        (('introduced: "0"}, {fixed: "1.2.1"', 'introduced: "2"}, {fixed: "1.2.1"'), "ends before"),
        (('{introduced: "0"}, {fixed: "1.2.1"}', '{fixed: "1.2.1"}'), "where it begins"),
        (('{fixed: "1.2.1"}', '{fixed: "1.2.1", last_affected: "1"}'), "2 edges, not one"),
        (("id: CVE-2026-24229", "id: CVE-2026-24205"), "stands already in CVE-2026-24205"),
        (("[host_offload]", "[host_offlaod]"), "no feature host_offlaod of tensorrt-llm"),
        (("severity: high", "severity: terrible"), "Invalid enum value 'terrible'"),
        (("https://www.cve.org", "ftp://www.cve.org"), "matching regex"),
        (("- id: CVE-2026-24205", "- id: [CVE"), "no YAML in line"),
        (("- id: CVE-2026-24205", "advisories:\n- id: CVE-2026-24205"), "no list of advisories"),
    ],
)  # fmt: skip
def test_what_lint_finds(change: tuple[str, str], problem: str) -> None:
    text = text_of("engines.yaml")
    assert change[0] in text
    found = check([("ours.yaml", text.replace(*change))])
    assert any(problem in one.problem for one in found), found
    assert all(one.file == "ours.yaml" and one.next_step for one in found)
