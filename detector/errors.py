"""The exception tree: every error says what, where, why and what next.

BleedwatchError
├── UsageError            a command line or an API call that cannot be obeyed
├── SettingsError         a setting that is unknown, of the wrong type or out of bounds
├── KeyFileError          the secret is missing, unreadable, too short or too open
├── InputError            a file or stream that cannot be read at all
├── SketchError           sketches that were made differently and cannot be compared
├── DeviceMemoryError     a batch that did not fit on the accelerator: it is redone on the CPU
├── EngineError           an engine behind the tap that gives no answer, or no whole one
├── ScrapeError           an engine's endpoint without a usable answer: no sample, counted
├── BudgetError           a probe has used up the requests or the time that it may use
├── StoreError            the database cannot be opened, is away, or is of another version
├── StreamError           a worker's positions are not what they must be: it ends uncommitted
└── RecordError           one record that fails a bound: counted and skipped, never fatal
"""


class BleedwatchError(Exception):
    """Base of all errors that a user is meant to read.

    `what` is the fault, `where` a place such as "config.yaml:12" or "server.log:1042",
    `hint` the next step. None of the three may hold token ids, text or secrets.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}" + (f" ({self.hint})" if self.hint else "")


class UsageError(BleedwatchError):
    """A command line or call that cannot be obeyed as given."""


class SettingsError(BleedwatchError):
    """A setting is unknown, of the wrong type or outside its bounds."""


class KeyFileError(BleedwatchError):
    """The deployment secret is missing, unreadable, malformed or readable by others."""


class InputError(BleedwatchError):
    """A file or stream cannot be opened, decoded or recognised as a whole."""


class SketchError(BleedwatchError):
    """Two sketches were made under different headers: comparing them would say nothing."""


class DeviceMemoryError(BleedwatchError):
    """The accelerator had no memory for a batch. Nothing of the batch was used."""


class RecordError(BleedwatchError):
    """One record breaks a stated bound. `reason` is a fixed word used as a counter label."""

    def __init__(self, reason: str, what: str, *, where: str = "", hint: str = "") -> None:
        self.reason = reason
        super().__init__(what, where=where, hint=hint)


class ScrapeError(BleedwatchError):
    """An engine's endpoint gave no usable answer. `reason` is a fixed word: a counter's label."""

    def __init__(self, reason: str, what: str, *, where: str = "", hint: str = "") -> None:
        self.reason = reason
        super().__init__(what, where=where, hint=hint)


class EngineError(BleedwatchError):
    """The engine behind the tap gave no whole answer. `reason` is a fixed word: a label."""

    def __init__(self, reason: str, what: str, *, where: str = "", hint: str = "") -> None:
        self.reason = reason
        super().__init__(what, where=where, hint=hint)


class BudgetError(BleedwatchError):
    """A probe has used up the requests or the time that it said it would use at most."""


class BrokerError(BleedwatchError):
    """The message broker is away, refuses, or is not set up as needed."""


class StreamError(BleedwatchError):
    """A stream and its handler disagree about positions: the process ends without committing."""


class TooManyDeadLettersError(BleedwatchError):
    """So much of an input is unreadable that going on would drain it: the process must end."""


class StoreError(BleedwatchError):
    """The database cannot be opened, is away, refuses, or was written by a newer program."""
