"""A sidecar is the same from the command and from the chart, and the examples fit their pods."""

import shutil
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from helm_python.chart import Chart

from detector.cli.sidecar_patch import ENGINES, EngineKind
from helm.build import EXAMPLES
from tests.chart.merging import merged
from tests.chart.rendering import CHART
from tests.e2e.program import Capture, call

VERSIONS = ("1.29", kubernetes_validate.latest_version())

PRODUCTION_STACK = {
    "name": "vllm-llama3-deployment-vllm",
    "containers": [
        {
            "name": "vllm",
            "image": "vllm/vllm-openai:latest",
            "command": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct", "--port", "8000"],
            "env": [{"name": "HF_HOME", "value": "/data"}],
            "volumeMounts": [{"name": "vllm-storage", "mountPath": "/data"}],
        }
    ],
    "volumes": [{"name": "vllm-storage", "emptyDir": {}}],
}
"""What is rendered of a model by the public chart, as far as a sidecar is concerned."""


def _engine(name: str, containers: list[Any], volumes: list[Any]) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": containers, "volumes": volumes}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def _sglang(role: str) -> dict[str, Any]:
    server = {
        "name": "sglang",
        "image": "lmsysorg/sglang:latest",
        "command": ["python3", "-m", "sglang.launch_server"],
        "args": ["--model-path", "Qwen/Qwen3-8B", "--disaggregation-mode", role],
    }
    return _engine(f"sglang-{role}", [server], [])


ENGINE_PODS = {
    "vllm-production-stack": [_engine(**PRODUCTION_STACK)],  # type: ignore[arg-type]
    "sglang-prefill-decode": [_sglang("prefill"), _sglang("decode")],
}


def _chart_sidecar(folder: Path, kind: str, **more: str) -> dict[str, Any]:
    """Return what a chart with ours as a dependency makes of the templates."""
    (folder / "templates").mkdir(parents=True)
    shutil.copytree(CHART, folder / "charts" / "bleedwatch")
    about = {"apiVersion": "v2", "name": "engine", "version": "1.0.0"}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
    words = "".join(f' "{name}" "{value}"' for name, value in more.items())
    of = f'(dict "root" .Subcharts.bleedwatch "kind" "{kind}"{words})'
    parts = ("sidecar", "sidecarVolumes", "engineSettings", "engineMounts")
    text = "".join(
        f'{part}:\n  {{{{- include "bleedwatch.{part}" {of} | nindent 2 }}}}\n' for part in parts
    )
    (folder / "templates" / "pod.yaml").write_text(text)
    values = {"bleedwatch": {"mode": "sidecars", "secrets": [{"name": "kafka", "secretName": "k"}]}}
    with Chart.load(folder) as chart:
        made = chart.render(values=values, name="bleedwatch")
    rendered: dict[str, Any] = yaml.safe_load(made["engine/templates/pod.yaml"])
    return rendered


@pytest.mark.parametrize("kind", list(EngineKind))
def test_the_command_and_the_chart_agree(capsys: Capture, tmp_path: Path, kind: str) -> None:
    code, out, err = call(
        capsys, *("sidecar", "manifest", "--engine-kind", kind, "--kv-pool", "pool-1"),
        *("--secret", "kafka=k"),
    )  # fmt: skip
    assert (code, err) == (0, "")
    pod = yaml.safe_load(out)["spec"]["template"]["spec"]
    (engine,) = pod["containers"]
    chart = _chart_sidecar(tmp_path / "engine", kind, kvPool="pool-1")
    assert chart["sidecar"] == pod["initContainers"]
    assert chart["sidecarVolumes"] == pod["volumes"]
    assert chart["engineMounts"] == engine.pop("volumeMounts")
    assert {"name": engine.pop("name"), **engine} == {"name": kind, **chart["engineSettings"]}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ENGINE_PODS)
def test_an_example_fits_the_pods_it_is_for(name: str, version: str) -> None:
    patches = list(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text("utf-8")))
    assert len(patches) == len(ENGINE_PODS[name])
    for base, patch in zip(ENGINE_PODS[name], patches, strict=True):
        assert base["metadata"]["name"] == patch["metadata"]["name"]
        made = merged(base, patch)
        kubernetes_validate.validate(made, version, strict=True)
        pod = made["spec"]["template"]["spec"]
        (engine,), (sidecar,) = pod["containers"], pod["initContainers"]
        given = base["spec"]["template"]["spec"]["containers"][0]
        assert engine["image"] == given["image"]
        assert engine.get("args") == given.get("args")
        assert sidecar["restartPolicy"] == "Always"
        assert "startupProbe" not in sidecar  # it would hold up the engine
        mounted = {one["name"] for box in (engine, sidecar) for one in box["volumeMounts"]}
        assert mounted == {one["name"] for one in pod["volumes"]}
        logs = next(one for one in pod["volumes"] if one["name"] == "bleedwatch-logs")
        assert logs["emptyDir"]["medium"] == "Memory"


def test_the_values_of_the_production_stack_hold_the_flags() -> None:
    text = (EXAMPLES / "vllm-production-stack-values.yaml").read_text("utf-8")
    (model,) = yaml.safe_load(text)["servingEngineSpec"]["modelSpec"]
    assert model["vllmConfig"]["extraArgs"] == list(ENGINES[EngineKind.VLLM].flags)


@pytest.mark.parametrize("kind", list(EngineKind))
def test_the_flags_are_those_that_the_doctor_asks_for(capsys: Capture, kind: str) -> None:
    code, out, _ = call(capsys, "doctor", "--flags", kind, "-o", "json")
    assert code == 0
    flags = [flag for flag in ENGINES[EngineKind(kind)].flags if flag.startswith("--")]
    assert [flag for flag in flags if f'"{flag}' not in out] == []


@pytest.mark.parametrize(
    "wrong",
    [
        ("--image", "a b"),
        ("--release", "x}\n- name: y"),
        ("--secret", "kafka"),
        ("--kv-pool", "a: b"),
        ("--engine-url", "http://u:p@host"),
        ("--key-secret", "K"),
    ],
    ids=lambda wrong: wrong[0],
)
def test_what_is_no_name_is_refused(capsys: Capture, wrong: tuple[str, str]) -> None:
    code, out, err = call(capsys, "sidecar", "manifest", *wrong)
    assert (code, out) == (2, "")
    assert wrong[0] in err
