"""`bleedwatch notify-draft`: the draft of a notice to one tenant about one incident."""

from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.terminal import note, write


@with_examples
def notify_draft(
    incident_id: Annotated[str, typer.Argument(metavar="INCIDENT", help="Id of the incident.")],
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Whom the notice is for.")],
    config: options.Config = None,
    assignments: options.Assignments = None,
) -> None:
    """Write what one tenant may be told, as Markdown.

    It names no other tenant and holds no content.

    For example:
      bleedwatch notify-draft inc-7f3a acme > notice.txt
    """
    from contextlib import closing

    from detector.config.load import load_settings
    from detector.errors import UsageError
    from detector.notice import notice, touched
    from exporters.store.database import open_store
    from exporters.store.findings import findings_of
    from exporters.store.incidents import incident
    from exporters.store.look_backs import look_backs_of

    settings = load_settings(config, assignments=assignments or ()).settings
    with (
        closing(open_store(settings.store, must_exist=True)) as database,
        database.read() as connection,
    ):
        found = incident(connection, incident_id)
        if found is None:
            hint = "see which there are: bleedwatch incidents list"
            raise UsageError("there is no such incident", where="INCIDENT", hint=hint)
        findings = [one.observed.finding for one in findings_of(connection, incident_id)]
        looked = look_backs_of(connection, [one.id for one in findings])
    traced = [source.party for one in looked for source in one.sources]
    about = touched(findings, tenant, traced=traced)
    if not about.is_any:
        raise UsageError(
            "no finding of this incident is about that tenant",
            where="TENANT",
            hint=f"see whose requests ran beside it: bleedwatch blast-radius {incident_id}",
        )
    write(notice(incident_id, tenant, about))
    note("a draft: check it, and write what was done before it is sent")
