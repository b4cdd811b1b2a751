"""What checks look at: the settings, the ends of the logs, what the engines answer. Each once."""

import time
from functools import cached_property

from detector.config.root import Settings
from detector.doctor.engine_evidence import EngineEvidence, ask
from detector.doctor.log_evidence import LogEvidence, logs_of, look_at
from detector.doctor.visibility import Visibility, load_visibility
from ingest.scrape.scraper import make_scraper


class Facts:
    """Everything that is known of this machine; looked at when a check first asks."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def logs(self) -> list[LogEvidence]:
        """The logs that the sidecar follows, as their ends show them."""
        return [look_at(path, self.settings) for path in logs_of(self.settings)]

    @cached_property
    def engines(self) -> list[EngineEvidence]:
        """The engines that the sidecar asks. Raises SettingsError for targets that cannot be."""
        sidecar = self.settings.sidecar
        scraper = make_scraper(self.settings.scrape, engine=sidecar.engine, kv_pool=sidecar.kv_pool)
        return [ask(target, now_ms=int(time.time() * 1000)) for target in scraper.targets]

    @cached_property
    def visibility(self) -> dict[str, Visibility]:
        """What makes each kind of engine visible."""
        return load_visibility()
