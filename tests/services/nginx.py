"""A real nginx of the Debian package, as one process, with locations that a document shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.services.http_service import http_service
from tests.services.packages import program
from tests.services.ports import free_port

CONFIG: Final = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {around}
    server {{
        listen 127.0.0.1:{port};
        location = /up {{ return 204; }}
        {locations}
    }}
}}
"""


@contextmanager
def nginx(folder: Path, locations: str, *, around: str = "") -> Iterator[str]:
    """Give the address of an nginx; `around` stands beside its server."""
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, around=around, port=port, locations=locations))
    command = [program("nginx", "nginx", folders=("/usr/sbin",)), "-e", "stderr", "-c", str(config)]
    url = f"http://127.0.0.1:{port}"
    with http_service(command, folder / "nginx.log", ready=f"{url}/up"):
        yield url
