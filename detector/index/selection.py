"""Which shingles of a sequence the index keeps: all that are rare, or a winnowed sample of them."""

from detector.kernels.winnow import sample
from detector.settings import IndexSettings
from detector.sketch.batch import Prepared
from detector.sketch.shingle import Keys, Mask


def selected(
    settings: IndexSettings, keys: Keys, masked: Mask, rare: Mask, prepared: Prepared | None = None
) -> Mask:
    """Return which shingles to index and to look up; `rare` are neither masked nor common.

    Common shingles are left out in both modes: they are explained whoever meets in them, looking
    them up would be most of the work on stock phrases, and runs are extended over them.

    Dropping common picks keeps the guarantee of winnowing. Take a run of window + 9 tokens or more
    that two sequences share and whose shingles are rare when the later one comes in. They were rare
    for the earlier one as well: while a shingle is remembered, parties are only added to it. The
    run holds a window of neighbouring shingles. What a window picks depends on nothing outside it,
    so both sequences pick the same shingle of it, at the same place of the run; it lies in the run,
    so it is rare and neither drops it.
    """
    if settings.sampling == "every":
        return rare
    if prepared is not None and prepared.picked is not None:
        picked = prepared.picked
    else:
        picked = sample(keys, masked, settings.winnow_window)
    return picked & rare


def sampled_from(settings: IndexSettings) -> int:
    """Return of how many neighbouring rare shingles one is kept at least."""
    return 1 if settings.sampling == "every" else settings.winnow_window
