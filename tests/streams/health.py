"""What a program that runs says of its health."""

import re
import urllib.error
import urllib.request


def status(port: int, path: str) -> int:
    """Return the HTTP status of a path of the health port; 0 while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return int(error.code)
    except OSError:
        return 0


def metric(port: int, name: str) -> float:
    """Return the value of a metric without labels; 0 while there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            found = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)
    except OSError:
        return 0.0
    return float(found[1]) if found else 0.0
