"""What the cluster needs of the machine: fetched or installed before any clock runs."""

from tests.cluster import browser
from tests.kafka.jars import class_path, java
from tests.services import alertmanager, postgres, prometheus
from tests.services.packages import program


def needed() -> str:
    """Fetch and install what is missing and say what there is.

    Raises BleedwatchError or AssertionError with what to install.
    """
    java()
    class_path()
    program("postgres", postgres.PACKAGE, folders=postgres.BINARIES)
    program("prometheus", prometheus.PACKAGE)
    program("prometheus-alertmanager", alertmanager.PACKAGE)
    program("chromium", browser.PACKAGE)
    return "Java, Kafka, PostgreSQL, Prometheus, Alertmanager, Chromium"
