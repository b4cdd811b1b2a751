"""The whole cluster on one machine: broker, database, alerting, engines and the program itself."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dashboards.build import HERE as BOARDS
from detector.sample.traffic import Traffic
from tests.cluster.clients import Clients, sample
from tests.cluster.process import Process
from tests.cluster.site import ENGINES, Site
from tests.cluster.steps import Steps
from tests.e2e.program import environment
from tests.fakes.receiver import Receiver, receiver
from tests.kafka.cluster import KafkaServer
from tests.kafka.cluster import running as kafka_running
from tests.scenarios.chain import write_history
from tests.services.alertmanager import Alertmanager, alertmanager
from tests.services.postgres import SURVIVES_KILLS, PostgresServer
from tests.services.postgres import running as postgres_running
from tests.services.prometheus import Prometheus, prometheus

WORKERS: Final = ("worker-0", "worker-1")
API: Final = "api"
RULES: Final = (BOARDS / "rules" / "alerts.yaml", BOARDS / "rules" / "recording.yaml")

REQUEST_EACH_S: Final = 1.0
"""Every engine gets so much: three requests a second in all."""

REQUESTS: Final = 300
"""Different requests; after a hundred seconds tenants ask the same again."""


@dataclass(kw_only=True)
class Cluster:
    """One that runs. `hook` is the receiver of our webhooks; Alertmanager has one of its own."""

    site: Site
    traffic: Traffic
    clients: Clients
    kafka: KafkaServer
    postgres: PostgresServer
    alertmanager: Alertmanager
    prometheus: Prometheus
    hook: Receiver
    processes: dict[str, Process] = field(default_factory=dict)

    def sidecar(self, engine: str) -> Process:
        """Return the sidecar beside an engine."""
        return self.processes[f"sidecar-{engine}"]


@contextmanager
def cluster(
    folder: Path, steps: Steps, *, each_s: float = REQUEST_EACH_S, broker_dir: Path | None = None
) -> Iterator[Cluster]:
    """Run a cluster with traffic for the time of a `with` block; all of it is ended then.

    The broker keeps its files in `broker_dir`, if there is one.
    """
    with ExitStack() as stack:
        with steps.step("Kafka, PostgreSQL, Alertmanager, Prometheus") as step:
            made = _services(folder, stack, each_s, broker_dir)
            step.seen = f"broker {made.kafka.bootstrap}, store {made.site.store_url}"
        with steps.step("three engines, two workers, api, three sidecars") as step:
            _start(made, stack)
            step.seen = f"{len(made.processes)} processes are ready, configured by one file"
        with steps.step("what is common is learned from the day before") as step:
            step.seen = load_history(made)
        stack.callback(made.clients.end)
        made.clients.start()
        yield made
        with steps.step("everything is ended") as step:
            stack.close()
            left = [one.name for one in made.processes.values() if one.is_running]
            assert not left, f"still running: {left}"
            step.seen = f"{len(made.processes)} processes and four services"


def bleedwatch(site: Site, *words: str) -> str:
    """Run one command of the program and return what it says; raises AssertionError if it fails."""
    done = subprocess.run(
        site.command(*words), capture_output=True, timeout=120, check=False,
        env=environment(TZ="UTC"),
    )  # fmt: skip
    said = done.stderr.decode(errors="replace").strip()
    assert done.returncode == 0, f"bleedwatch {' '.join(words)} ended with {said[-800:]}"
    return done.stdout.decode() or said


def load_history(made: Cluster) -> str:
    """Tell the workers what tenants have shown on the day before."""
    path = made.site.folder / "yesterday.jsonl"
    write_history(path, made.traffic.history, begin_s=time.time() - 60.0)
    return bleedwatch(made.site, "commonness", "load", str(path))


def _services(folder: Path, stack: ExitStack, each_s: float, broker_dir: Path | None) -> Cluster:
    kafka = stack.enter_context(kafka_running(folder / "kafka", log_dir=broker_dir))
    postgres = stack.enter_context(postgres_running(options=SURVIVES_KILLS))
    hook, pager = stack.enter_context(receiver()), stack.enter_context(receiver())
    alerts = stack.enter_context(alertmanager(folder, webhook=pager.url))
    site = Site(
        folder=folder,
        kafka=kafka.bootstrap,
        store_url=postgres.new_database(),
        store_password=postgres.password_file,
        alertmanager=alerts.url,
        webhook=hook.url,
    )
    site.write()
    watching = stack.enter_context(
        prometheus(
            folder / "prometheus", targets=_targets(site), rules=RULES, alertmanager=alerts.url
        )
    )
    traffic = sample(REQUESTS)
    return Cluster(
        site=site, traffic=traffic, clients=Clients(site, traffic, each_s=each_s), kafka=kafka,
        postgres=postgres, alertmanager=alerts, prometheus=watching, hook=hook,
    )  # fmt: skip


def _targets(site: Site) -> dict[str, Sequence[str]]:
    jobs = {
        "bleedwatch-worker": WORKERS,
        "bleedwatch-api": (API,),
        "bleedwatch-sidecar": tuple(f"sidecar-{engine}" for engine in ENGINES),
    }
    return {job: [f"127.0.0.1:{site.port(name)}" for name in names] for job, names in jobs.items()}


def _start(made: Cluster, stack: ExitStack) -> None:
    site = made.site
    engines = [site.engine(name) for name in ENGINES]
    ours = [site.process(name, "worker") for name in WORKERS]
    ours.append(site.process(API, "api", API__PORT=str(site.port("api-http"))))
    ours += [site.sidecar(engine) for engine in ENGINES]
    for one in [*engines, *ours]:
        made.processes[one.name] = one
        stack.callback(one.kill)
    for one in engines:
        one.start()
    bleedwatch(site, "topics", "create")
    for one in ours:
        one.start()
    for one in made.processes.values():
        one.await_ready()
