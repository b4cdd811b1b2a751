"""The root of all settings: one section for each concern."""

from pydantic import Field, field_validator

from detector.runtime.settings import RuntimeSettings
from detector.settings import DetectionSettings, Section
from detector.trace.settings import TraceSettings
from exporters.http.settings import ApiSettings, ClientSettings
from exporters.incidents.settings import IncidentSettings
from exporters.outputs.settings import Outputs, SendingSettings
from exporters.settings import MetricsSettings
from exporters.store.settings import StoreSettings
from ingest.chat_template import ChatTemplateSettings
from ingest.dead_letter_limit import DeadLetterSettings
from ingest.heartbeat_settings import HeartbeatSettings
from ingest.http_settings import HttpSettings
from ingest.kafka_settings import KafkaSettings
from ingest.key_file import looks_like_a_secret
from ingest.key_rotation import SealingSettings
from ingest.kv_events.settings import KvEventSettings
from ingest.packing_settings import PackingSettings
from ingest.push.settings import BackPressureSettings, PushSettings
from ingest.scrape.settings import ScrapeSettings
from ingest.sidecar_settings import SidecarSettings
from ingest.signals.settings import SignalSettings
from ingest.sources.field_map import FieldMap
from ingest.spool_settings import SpoolSettings
from ingest.stream_settings import StreamSettings
from ingest.tap.settings import TapSettings
from ingest.tenancy import TenancySettings


class SourceSettings(Section):
    """How the readers understand their input."""

    jsonl: FieldMap = FieldMap()


class Settings(Section):
    """Everything a configuration file may set."""

    key_file: str | None = Field(
        None,
        description="File with the 32-byte deployment secret, as `bleedwatch key new` writes it.",
    )
    detection: DetectionSettings = DetectionSettings()
    runtime: RuntimeSettings = RuntimeSettings()
    tenancy: TenancySettings = TenancySettings()
    template: ChatTemplateSettings = ChatTemplateSettings()
    sources: SourceSettings = SourceSettings()
    trace: TraceSettings = TraceSettings()
    kafka: KafkaSettings = KafkaSettings()
    http: HttpSettings = HttpSettings()
    sealing: SealingSettings = SealingSettings()
    packing: PackingSettings = PackingSettings()
    sidecar: SidecarSettings = SidecarSettings()
    scrape: ScrapeSettings = ScrapeSettings()
    signals: SignalSettings = SignalSettings()
    kv_events: KvEventSettings = KvEventSettings()
    spool: SpoolSettings = SpoolSettings()
    push: PushSettings = PushSettings()
    tap: TapSettings = TapSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    backpressure: BackPressureSettings = BackPressureSettings()
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    metrics: MetricsSettings = MetricsSettings()
    stream: StreamSettings = StreamSettings()
    store: StoreSettings = StoreSettings()
    incidents: IncidentSettings = IncidentSettings()
    outputs: Outputs = Field(
        (), description="Where alerts go, as a list; each has a `kind` and a `name` of its own."
    )
    sending: SendingSettings = SendingSettings()
    api: ApiSettings = ApiSettings()
    client: ClientSettings = ClientSettings()

    @field_validator("key_file")
    @classmethod
    def _is_a_path(cls, value: str | None) -> str | None:
        """Refuse the secret itself, before a message or a table shows it as a path."""
        if value is not None and looks_like_a_secret(value):
            raise ValueError("must be the path of the key file, not the secret")
        return value
