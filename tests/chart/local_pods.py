"""Runs containers of rendered pods as processes here; only places and addresses are others."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.chart.rendering import Manifest
from tests.e2e.program import PROGRAM

Secrets = Mapping[str, Mapping[str, str]]
"""Name of a Secret -> key -> content."""


class LocalPod:
    """One container: its arguments and variables with mounts below `root` and other addresses.

    `config` is what the ConfigMap of the release holds. `addresses` are replaced in arguments,
    variables and configuration alike.
    """

    def __init__(
        self,
        pod: Manifest,
        container: Manifest,
        root: Path,
        *,
        config: Mapping[str, str],
        secrets: Secrets,
        addresses: Mapping[str, str],
    ) -> None:
        self.log = root / "stderr"
        self._before = [one["command"] for one in pod.get("initContainers", ()) if "command" in one]
        self._replaced = {
            **{one["mountPath"]: f"{root}{one['mountPath']}" for one in container["volumeMounts"]},
            **addresses,
        }
        self._variables = {"POD_NAME": "engine-0"}
        for one in container["env"]:
            if "value" in one:
                self._variables[one["name"]] = self._here(one["value"])
        self.arguments = [self._expanded(self._here(word)) for word in container["args"]]
        volumes = {one["name"]: one for one in pod["volumes"]}
        for mount in container["volumeMounts"]:
            at = Path(f"{root}{mount['mountPath']}")
            at.mkdir(parents=True)
            self._fill(at, volumes.get(mount["name"], {}), config, secrets)

    def _here(self, text: str) -> str:
        pattern = "|".join(map(re.escape, sorted(self._replaced, key=len, reverse=True)))
        return re.sub(rf"(?<!\w)(?:{pattern})\b", lambda found: self._replaced[found[0]], text)

    def _expanded(self, word: str) -> str:
        return re.sub(r"\$\((\w+)\)", lambda found: self._variables[found[1]], word)

    def _fill(
        self, at: Path, volume: Manifest, config: Mapping[str, str], secrets: Secrets
    ) -> None:
        for name, text in config.items() if "configMap" in volume else ():
            (at / name).write_text(self._here(text))
        if "secret" in volume:
            for name, text in secrets[volume["secret"]["secretName"]].items():
                (at / name).write_text(text)
                (at / name).chmod(0o400)  # a group may read only what is somebody else's

    def prepare(self) -> None:
        """Run what the pod runs before its container, each to its end."""
        place = Path(sys.executable).parent  # of the program, which is on the PATH of the image
        variables = {**self._environment(), "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
        for command in self._before:
            subprocess.run(command, env=variables, check=True, timeout=60)

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Run it for the time of a block; its end must be in order when it is told to stop."""
        with (
            self.log.open("wb") as said,
            subprocess.Popen(
                [*PROGRAM, *self.arguments],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            ) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def _environment(self) -> dict[str, str]:
        # A container without a mount at /tmp has nowhere to write.
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TMPDIR": self._replaced.get("/tmp", "/nowhere"),
            **self._variables,
        }


def config_of(objects: list[Manifest]) -> dict[str, str]:
    """Return what the ConfigMap of a release holds."""
    return next(one["data"] for one in objects if "config.yaml" in one.get("data", {}))


def pod_of(objects: list[Manifest], component: str) -> Manifest:
    """Return the pod of a component."""
    label = "app.kubernetes.io/component"
    for one in objects:
        template = one.get("spec", {}).get("template", {})
        if template and template["metadata"]["labels"][label] == component:
            pod: Manifest = template["spec"]
            return pod
    raise AssertionError(component)


def answer(url: str, token: str = "") -> tuple[int, Any]:
    """Return status and JSON of an answer; status 0 where nobody listens yet."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=5) as got:
            return got.status, json.load(got)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except OSError:
        return 0, None


def sidecar_pod(patch: str) -> Manifest:
    """Return the pod of a patch."""
    pod: Manifest = yaml.safe_load(patch)["spec"]["template"]["spec"]
    return pod
