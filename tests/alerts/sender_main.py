"""A sender as a process of its own: `python -m tests.alerts.sender_main STORE_URL WEBHOOK_URL`."""

import os
import signal
import sys
import threading

from detector.alerting import new_sender
from detector.config.root import Settings
from exporters.store.database import open_store
from exporters.store.settings import StoreSettings


def settings(store_url: str, webhook_url: str) -> Settings:
    """Return the settings of one output named `hook`."""
    return Settings.model_validate(
        {
            "store": {"url": store_url},
            "outputs": [
                {
                    "kind": "webhook",
                    "name": "hook",
                    "url": webhook_url,
                    "allow_private": True,
                    "most_per_minute": 1_000_000,
                }
            ],
        }
    )


def main() -> None:
    """Send until SIGTERM, then end in order."""
    store_url, webhook_url = sys.argv[1:]
    database = open_store(StoreSettings(url=store_url))
    sender = new_sender(settings(store_url, webhook_url), database, holder=f"process-{os.getpid()}")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    sender.start()
    print("started", flush=True)
    stop.wait()
    sender.stop()
    database.close()


if __name__ == "__main__":
    main()
