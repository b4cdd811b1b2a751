"""What is added to an engine's pod in Kubernetes so that a sidecar stands beside it, as YAML text.

The templates of the Helm chart are made from the same text. A sidecar never holds up its engine: it
has no startup probe, goes on while the broker is away, and starts late if its key is missing.
"""

import enum
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

PORT: Final = 9464
"""Of the sidecar's probes and metrics: the default of `metrics.port`."""

LOGS: Final = "/logs"


class EngineKind(enum.StrEnum):
    """Engines whose request log is known."""

    VLLM = "vllm"
    SGLANG = "sglang"


@dataclass(frozen=True, slots=True)
class _Engine:
    """What an engine is started with so that it can be watched; docs/engine-logs.md says why."""

    url: str
    flags: tuple[str, ...]
    settings: str
    mounts: str


_LOGS_MOUNT: Final = f"- {{name: bleedwatch-logs, mountPath: {LOGS}}}\n"

ENGINES: Final = {
    EngineKind.VLLM: _Engine(
        url="http://127.0.0.1:8000",
        flags=("--enable-log-requests", "--enable-log-outputs"),
        settings="# Add to its arguments: {flags}\n"
        "env:\n"
        "  - name: VLLM_LOGGING_CONFIG_PATH\n"
        "    value: /etc/bleedwatch/config/vllm-logging.json\n",
        mounts=_LOGS_MOUNT
        + "- {name: bleedwatch-config, mountPath: /etc/bleedwatch/config, readOnly: true}\n",
    ),
    EngineKind.SGLANG: _Engine(
        url="http://127.0.0.1:30000",
        flags=(
            *("--log-requests", "--log-requests-level", "3", "--log-requests-format", "json"),
            *("--log-requests-target", LOGS, "--enable-metrics"),
        ),
        settings="# Logs that the sidecar may free: its group may write. `args` stays as it is.\n"
        "command:\n"
        "  - sh\n"
        "  - -c\n"
        "  - >-\n"
        '    umask 0002; exec python3 -m sglang.launch_server "$@"\n'
        "    {flags}\n"
        "  - sglang\n"
        "env:\n"
        '  - {{name: SGLANG_LOG_REQUEST_HEADERS, value: "x-request-id,x-tenant-id"}}\n',
        mounts=_LOGS_MOUNT,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What differs between installations. All of it stands in YAML as it is."""

    kind: EngineKind
    image: str
    release: str = "bleedwatch"
    """The release of the chart, whose ConfigMap holds the configuration."""
    key_secret: str = "bleedwatch-key"  # noqa: S105 - the name of a Kubernetes object
    key_item: str = "key"
    secrets: Sequence[tuple[str, str]] = field(default=())
    """Folder and Secret of whatever else the configuration names."""
    kv_pool: str | None = None
    container: str | None = None
    """The engine's container; by default it is called like the engine."""
    engine_url: str | None = None
    user: str = "10001"
    """User id of the sidecar; its group is 0, which owns what a pod without fsGroup mounts."""


_CONTAINER: Final = """\
- name: bleedwatch
  restartPolicy: Always # a native sidecar: it ends after the engine
  image: {image}
  args:
    - run
    - sidecar
    - {logs}/*.log
    - --format={kind}
    - --engine=$(POD_NAME)
{pool}\
    - --checkpoint=/state/checkpoint
    - --own-logs
    - --set=spool.folder=/state/spool
    - '--set=scrape.targets=[{{"url": "{url}", "engine": "$(POD_NAME)"}}]'
    - --set=metrics.host=0.0.0.0
    - --set=metrics.port={port}
  env:
    - {{name: BLEEDWATCH_CONFIG, value: /etc/bleedwatch/config/config.yaml}}
    - {{name: BLEEDWATCH_KEY_FILE, value: /etc/bleedwatch/key/key}}
    - name: POD_NAME
      valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}
  ports:
    - {{name: bw-metrics, containerPort: {port}}}
  livenessProbe:
    httpGet: {{path: /livez, port: bw-metrics}}
    periodSeconds: 20
  resources:
    requests: {{cpu: 50m, memory: 128Mi}}
    limits: {{memory: 256Mi}}
  securityContext:
    runAsNonRoot: true
    runAsUser: {user}
    runAsGroup: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {{drop: [ALL]}}
    seccompProfile: {{type: RuntimeDefault}}
  volumeMounts:
    - {{name: bleedwatch-config, mountPath: /etc/bleedwatch/config, readOnly: true}}
    - {{name: bleedwatch-key, mountPath: /etc/bleedwatch/key, readOnly: true}}
    - {{name: bleedwatch-state, mountPath: /state}}
    - {{name: bleedwatch-logs, mountPath: {logs}}}
{mounts}"""

_VOLUMES: Final = """\
- name: bleedwatch-config
  configMap: {{name: {release}}}
- name: bleedwatch-key
  secret:
    secretName: {key_secret}
    defaultMode: 0440
    optional: true
    items: [{{key: {key_item}, path: key}}]
- name: bleedwatch-state # twice the spool: a pod that fills it is evicted
  emptyDir: {{sizeLimit: 2Gi}}
- name: bleedwatch-logs # prompts and answers: never on a disk
  emptyDir: {{medium: Memory, sizeLimit: 1Gi}}
{secrets}"""


def container(names: Names) -> str:
    """Return the sidecar's container, as an item of `initContainers`."""
    pool = "" if names.kv_pool is None else f"    - --kv-pool={names.kv_pool}\n"
    mounts = "".join(
        f"    - {{name: bleedwatch-{name}, mountPath: /etc/bleedwatch/secrets/{name}, "
        "readOnly: true}\n"
        for name, _ in names.secrets
    )
    return _CONTAINER.format(
        image=names.image,
        logs=LOGS,
        kind=names.kind.value,
        pool=pool,
        url=names.engine_url or ENGINES[names.kind].url,
        port=PORT,
        user=names.user,
        mounts=mounts,
    )


def volumes(names: Names) -> str:
    """Return the items of `volumes` that sidecar and engine mount."""
    secrets = "".join(
        f"- name: bleedwatch-{name}\n"
        f"  secret: {{secretName: {secret}, defaultMode: 0440, optional: true}}\n"
        for name, secret in names.secrets
    )
    return _VOLUMES.format(
        release=names.release,
        key_secret=names.key_secret,
        key_item=names.key_item,
        secrets=secrets,
    )


def engine_settings(kind: EngineKind) -> str:
    """Return what the engine's container is started with, but for its mounts."""
    engine = ENGINES[kind]
    return engine.settings.format(flags=" ".join(engine.flags))


def patch(names: Names) -> str:
    """Return a strategic merge patch for whatever has the engine's pod template."""
    kind = names.kind
    engine = f"- name: {names.container or kind.value}\n" + textwrap.indent(
        f"{engine_settings(kind)}volumeMounts:\n{textwrap.indent(ENGINES[kind].mounts, '  ')}", "  "
    )
    parts = {"initContainers": container(names), "containers": engine, "volumes": volumes(names)}
    body = "".join(f"{name}:\n{textwrap.indent(text, '  ')}" for name, text in parts.items())
    return (
        "spec:\n  template:\n    metadata:\n"
        '      labels: {bleedwatch-sidecar: "true"} # a PodMonitor of the chart looks for it\n'
        "    spec:\n" + textwrap.indent(body, "      ")
    )
