"""`bleedwatch sidecar manifest`: what to add to an engine's pod in Kubernetes."""

import re
from typing import Annotated, Final

import typer

from detector.cli.examples import with_examples
from detector.cli.sidecar_patch import EngineKind, Names, patch
from detector.cli.terminal import write

app = typer.Typer(no_args_is_help=True, help="Set a sidecar beside an engine in Kubernetes.")

_OBJECT: Final = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?"
_FORMS: Final = {
    "--release": _OBJECT,
    "--image": r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,500}",
    "--key-secret": rf"{_OBJECT}(/[-._a-zA-Z0-9]+)?",
    "--secret": rf"{_LABEL}={_OBJECT}",
    "--kv-pool": r"[A-Za-z0-9$()._-]{1,200}",
    "--container": _LABEL,
    "--engine-url": r"https?://[A-Za-z0-9.:\[\]-]+",
}
"""What may stand in YAML as it is: names of Kubernetes, references to images, plain words."""


@app.callback()
def _group() -> None:
    """Keep `manifest` a command of its own."""


@app.command("manifest")
@with_examples
def manifest(
    engine_kind: Annotated[
        EngineKind, typer.Option("--engine-kind", help="The engine in the pod.")
    ] = EngineKind.VLLM,
    release: Annotated[
        str, typer.Option("--release", metavar="NAME", help="ConfigMap with the configuration.")
    ] = "bleedwatch",
    image: Annotated[
        str | None, typer.Option("--image", metavar="IMAGE", help="Image of the sidecar.")
    ] = None,
    key_secret: Annotated[
        str,
        typer.Option("--key-secret", metavar="NAME[/KEY]", help="Secret with the key file."),
    ] = "bleedwatch-key/key",  # noqa: S107 - the name of a Kubernetes object
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", metavar="FOLDER=NAME", help="One more Secret; repeatable."),
    ] = None,
    kv_pool: Annotated[
        str | None,
        typer.Option("--kv-pool", metavar="NAME", help="KV pool that the engine shares."),
    ] = None,
    container: Annotated[
        str | None,
        typer.Option("--container", metavar="NAME", help="The engine's container."),
    ] = None,
    engine_url: Annotated[
        str | None, typer.Option("--engine-url", metavar="URL", help="Where it tells its metrics.")
    ] = None,
    run_as_user: Annotated[
        int, typer.Option("--run-as-user", metavar="UID", min=1, help="User of the sidecar.")
    ] = 10001,
) -> None:
    """Print a patch that sets a sidecar beside an engine.

    It is a strategic merge patch for a Deployment, a StatefulSet or any other object with a pod
    template: kubectl and kustomize take it as it is.

    For example:
      bleedwatch sidecar manifest --engine-kind sglang --kv-pool pd-0 > sidecar.yaml
      kubectl patch deployment engine --patch-file sidecar.yaml
    """
    from importlib.metadata import version

    given = {
        "--release": [release],
        "--image": [image or f"bleedwatch:{version('bleedwatch')}"],
        "--key-secret": [key_secret],
        "--secret": secret or [],
        "--kv-pool": [] if kv_pool is None else [kv_pool],
        "--container": [] if container is None else [container],
        "--engine-url": [] if engine_url is None else [engine_url],
    }
    _check(given)
    name, _, item = key_secret.partition("/")
    names = Names(
        kind=engine_kind,
        image=given["--image"][0],
        release=release,
        key_secret=name,
        key_item=item or "key",
        secrets=[(folder, of) for folder, _, of in (one.partition("=") for one in secret or [])],
        kv_pool=kv_pool,
        container=container,
        engine_url=engine_url,
        user=str(run_as_user),
    )
    write(patch(names).rstrip("\n"))


def _check(given: dict[str, list[str]]) -> None:
    """Raise UsageError for what is no name: it would stand in YAML as it is."""
    from detector.errors import UsageError

    for flag, values in given.items():
        for value in values:
            if not re.fullmatch(_FORMS[flag], value):
                raise UsageError(
                    f"{flag} cannot be {value!r}",
                    hint="give names as Kubernetes has them; --help shows the form",
                )
