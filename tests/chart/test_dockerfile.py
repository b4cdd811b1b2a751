"""The images are pinned, run without root, and are made of the package alone."""

import re
import tomllib

from tests.chart.dockerfile import ROOT, context, stages

IMAGES = ("sidecar", "full")


def test_the_base_is_one_exact_image() -> None:
    (base,) = stages()["base"].all("ARG")
    assert re.fullmatch(r"PYTHON=python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)
    made_from = {stage.parent for stage in stages().values()}
    assert made_from == {"", "${PYTHON}", "build"}


def test_images_run_without_root_and_hold_no_tools() -> None:
    for name in IMAGES:
        stage = stages()[name]
        assert stage.all("USER") == ["10001:0"]
        assert stage.all("RUN") == []
        assert stage.all("COPY") == [f"--from=install-{name} /opt/bleedwatch /opt/bleedwatch"]


def test_the_sidecar_lacks_what_only_workers_need() -> None:
    extras = {
        name: set(re.findall(r"\[([a-z,-]+)\]", " ".join(stages()[f"install-{name}"].all("RUN"))))
        for name in IMAGES
    }
    assert extras == {"sidecar": {"kv-events"}, "full": {"worker,kv-events,api,tap"}}


def test_every_dependency_has_an_exact_version() -> None:
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(one for extra in extras for one in extra)]
    names = {re.split(r"[^A-Za-z0-9_-]", one)[0].lower() for one in needed}
    assert names - {"bleedwatch", "torch"} <= pinned


def test_the_context_is_the_package() -> None:
    assert all(path.exists() for path in context())
    assert {path.name for path in context() if path.is_dir()} == {"detector", "ingest", "exporters"}
