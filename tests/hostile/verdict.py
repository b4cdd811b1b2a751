"""What must be true after an attack."""

from tests.hostile.attack import Report


def faults(report: Report) -> list[str]:
    """Return what is wrong, in words; empty when every record is accounted for."""
    found: list[str] = []
    for topic, told in report.topics.items():
        if told.unlike:
            place, wanted, got = told.unlike[0]
            found.append(
                f"{topic}: {len(told.unlike)} not told as they must be, such as {place}: "
                f"{wanted or 'nothing'} wanted, {got or 'nothing'} told"
            )
        if told.counted != told.sent + told.good:
            found.append(f"{topic}: {told.counted} counted of {told.sent + told.good}")
    lost, strange = (
        report.good_wanted - report.good_found,
        report.good_found - report.good_wanted,
    )
    if lost or strange:
        found.append(f"{len(lost)} bleeds of good records not found, {len(strange)} made up")
    if report.good_rows != report.good_events:
        found.append(f"{report.good_rows} rows of {report.good_events} good events")
    if report.letters_counted < sum(report.letters.values()):
        found.append(f"{report.letters_counted} refused counted of {report.letters.total()}")
    if report.told_canary:
        found.append("the worker's log holds what a tenant wrote")
    if report.exit_code:
        found.append(f"the worker ended with {report.exit_code}")
    return found
