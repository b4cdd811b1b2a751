"""Writes what is generated of the chart and its examples. Run `make chart`."""

import json
import re
from pathlib import Path
from typing import Final

import yaml

from detector.cli.sidecar_patch import (
    ENGINES,
    EngineKind,
    Names,
    container,
    engine_settings,
    patch,
    volumes,
)
from helm.values import Row, rows
from helm.values_schema import schema

CHART: Final = Path(__file__).parent / "bleedwatch"
EXAMPLES: Final = Path(__file__).parent / "examples"

_SIDECAR_HEAD: Final = """\
{{/*
A sidecar for the pod of an engine, for charts of engines that have this one as a dependency:

  {{- include "bleedwatch.sidecar" (dict "root" .Subcharts.bleedwatch "kind" "vllm") | nindent 8 }}

is an item of `initContainers`. `kind` is vllm or sglang; `kvPool` names a pool that engines share,
`url` where the engine tells its metrics, `user` whose id the sidecar gets. The pod's volumes are
`bleedwatch.sidecarVolumes`; the engine's container needs `bleedwatch.engineSettings` and
`bleedwatch.engineMounts`; the pod carries the label bleedwatch-sidecar: "true".
Generated from the text of `bleedwatch sidecar manifest`.
*/}}
"""

_README: Final = """\
# Bleedwatch on Kubernetes

Tells you when one tenant's tokens surface in another tenant's LLM response, and why. How to begin,
with vLLM and with SGLang, is in [docs/kubernetes.md](../../docs/kubernetes.md); `ci/` has whole
examples.

Kubernetes 1.29 or later. Pods run without root, with a read-only file system, without capabilities
and without a token of the cluster. Secrets are named, never held.

## Values

Generated from `values.yaml` by `make chart`.

| value | default | meaning |
|---|---|---|
"""

_STACK_VALUES: Final = """\
# Values for the chart of vLLM's production-stack: the flags that make requests visible.
# Helm replaces the list as a whole: copy `extraArgs` into your own model's entry, and do not give
# this file as it is. The sidecar itself comes by the patch beside it.
servingEngineSpec:
  modelSpec:
    - name: llama3
      vllmConfig:
        extraArgs: [{flags}]
"""

_STACK: Final = """\
# A sidecar in the pods of vLLM's production-stack, here of model `llama3` in release `vllm`:
#   kubectl patch deployment vllm-llama3-deployment-vllm --patch-file vllm-production-stack.yaml
# Made by `bleedwatch sidecar manifest --engine-kind vllm`; put your registry before the image.
# vllm-umask.yaml lets the sidecar free the log that is still written to.
"""

_SGLANG: Final = """\
# Sidecars for SGLang with prefill and decode apart, as patches of a kustomization: engines that
# hand KV memory to each other are one pool. Their containers are called `sglang` and have the
# flags of the server, without its command, in `args`.
# Made by `bleedwatch sidecar manifest --engine-kind sglang --kv-pool pd-0`; put your registry
# before the image.
"""


def files() -> dict[Path, str]:
    """Return the text of every generated file."""
    values = (CHART / "values.yaml").read_text(encoding="utf-8")
    return {
        CHART / "values.schema.json": json.dumps(schema(yaml.safe_load(values)), indent=1) + "\n",
        CHART / "README.md": _README + "".join(map(_row, rows(values))),
        CHART / "templates" / "_sidecar.tpl": _templates(),
        EXAMPLES / "vllm-production-stack-values.yaml": _STACK_VALUES.format(
            flags=", ".join(ENGINES[EngineKind.VLLM].flags)
        ),
        EXAMPLES / "vllm-production-stack.yaml": _STACK
        + _deployment("vllm-llama3-deployment-vllm", EngineKind.VLLM),
        EXAMPLES / "sglang-prefill-decode.yaml": _SGLANG
        + "---\n".join(
            _deployment(f"sglang-{role}", EngineKind.SGLANG, kv_pool="pd-0")
            for role in ("prefill", "decode")
        ),
    }


def _deployment(name: str, kind: EngineKind, *, kv_pool: str | None = None) -> str:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"]
    body = patch(Names(kind=kind, image=f"bleedwatch:{version}", kv_pool=kv_pool))
    return f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\n{body}"


def _row(row: Row) -> str:
    shown = "" if row.default is None else f"`{row.default}`"
    return f"| `{row.path}` | {shown} | {row.meaning} |\n"


def _templates() -> str:
    names = _placeholders()
    sidecar = container(names).replace("--format=vllm", "--format={{ .kind }}")
    parts = {
        "sidecar": _conditional(sidecar),
        "sidecarVolumes": _conditional(volumes(names)),
        "engineSettings": _by_kind({kind: engine_settings(kind) for kind in EngineKind}),
        "engineMounts": _by_kind({kind: ENGINES[kind].mounts for kind in EngineKind}),
    }
    return _SIDECAR_HEAD + "".join(
        f'\n{{{{- define "bleedwatch.{name}" -}}}}\n{body}{{{{- end -}}}}\n'
        for name, body in parts.items()
    )


def _placeholders() -> Names:
    """Return the names as a template finds them."""
    urls = " ".join(f'"{ENGINES[kind].url}"' for kind in (EngineKind.SGLANG, EngineKind.VLLM))
    return Names(
        kind=EngineKind.VLLM,
        image='{{ include "bleedwatch.image" .root }}',
        release='{{ include "bleedwatch.name" .root }}',
        key_secret="{{ .root.Values.keySecret.name }}",  # noqa: S106 - the name of an object
        key_item="{{ .root.Values.keySecret.key }}",
        secrets=[("{{ .name }}", "{{ .secretName }}")],
        kv_pool="{{ .kvPool }}",
        engine_url=f'{{{{ .url | default (ternary {urls} (eq .kind "sglang")) }}}}',
        user="{{ .user | default 10001 }}",
    )


def _by_kind(texts: dict[EngineKind, str]) -> str:
    sglang, vllm = texts[EngineKind.SGLANG], texts[EngineKind.VLLM]
    return f'{{{{- if eq .kind "sglang" }}}}\n{sglang}{{{{- else }}}}\n{vllm}{{{{- end }}}}\n'


def _conditional(text: str) -> str:
    """Put what may be absent, or there several times, between the words that say so."""
    pool = re.compile(r"^.*\{\{ \.kvPool \}\}\n", re.M)
    secrets = re.compile(r"(?:^.*\{\{ \.(?:name|secretName) \}\}.*\n)+", re.M)
    text = pool.sub(lambda found: f"{{{{- if .kvPool }}}}\n{found[0]}{{{{- end }}}}\n", text)
    return secrets.sub(
        lambda found: f"{{{{- range .root.Values.secrets }}}}\n{found[0]}{{{{- end }}}}\n", text
    )


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
