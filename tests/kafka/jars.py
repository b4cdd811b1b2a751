"""Apache Kafka as jars: fetched once by Maven, kept in .run/, named by the pom they came from."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from detector.errors import BrokerError

ROOT: Final = Path(__file__).parents[2]
RUN: Final = ROOT / ".run"
POM: Final = Path(__file__).with_name("pom.xml")

FETCH_TIMEOUT_S: Final = 240
"""A first fetch takes 40 s on two cores; the time-out of a test is 300 s."""


def java() -> str:
    """Return the path of the Java runtime; raises BrokerError where there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    found = found or shutil.which("java")
    if found is None:
        raise BrokerError(
            "Apache Kafka needs a Java runtime and there is none",
            where="java",
            hint="install one of version 17 or later (Debian, Ubuntu: openjdk-17-jdk-headless) or "
            "name another cluster in BLEEDWATCH_TEST_KAFKA=host:port",
        )
    return found


def class_path() -> str:
    """Return the class path of the broker, after fetching what is missing."""
    version = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    folder = RUN / f"kafka-jars-{version}"
    if not folder.is_dir():
        _fetch(folder)
    return f"{folder}/*"


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerError(
            "Apache Kafka is fetched by Maven and there is none",
            where="mvn",
            hint="install it (Debian, Ubuntu: maven) or name another cluster in "
            "BLEEDWATCH_TEST_KAFKA=host:port",
        )
    RUN.mkdir(exist_ok=True)
    # Renamed when complete, so that an interrupted or a parallel fetch leaves nothing half done.
    with tempfile.TemporaryDirectory(dir=RUN, prefix="fetch-") as scratch:
        jars = Path(scratch) / "jars"
        command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
        if done.returncode:
            first = next((line for line in done.stdout.splitlines() if "ERROR" in line), "")
            raise BrokerError(
                f"Maven could not fetch Apache Kafka: {first[:300]}",
                where=str(POM.relative_to(ROOT)),
                hint="check the network and the mirror that ~/.m2/settings.xml names",
            )
        try:
            jars.rename(folder)
        except OSError:
            if not folder.is_dir():  # else a parallel fetch was quicker
                raise
