"""Errors as exceptions, with messages as data."""
import builtins
import ctypes
from dataclasses import dataclass
from typing import Optional, Tuple

from . import _library
from ._library import c

SEVERITIES = ("error", "warning", "note", "performance")


@dataclass(frozen=True)
class Place:
    """Where in a source text. Lines and columns count from 1, columns in code
    points; `file` is the name that the text was given."""
    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Message:
    """One message: a sentence, its place, and what belongs to it. `unisono
    explain CODE` prints a page about it."""
    code: str
    severity: str  # one of SEVERITIES
    text: str
    place: Optional[Place]
    label: str  # what stands at the place: "f32[6, 3]"
    notes: Tuple[Tuple[Optional[Place], str], ...]  # other places
    facts: Tuple[str, ...]
    help: str


class Error(Exception):
    """A program failed, or a call was wrong. str() is what the command line
    shows; `messages` the same as data; `summary` is the first sentence."""

    def __init__(self, text, summary="", messages=()):
        super().__init__(text)
        self.summary = summary or text
        self.messages = messages


class ParseError(Error):
    """The text is no program."""


class CheckError(Error):
    """Names, types, sizes or axes do not fit; nothing has run."""


class RunError(Error):
    """The program failed while it ran: an index, an assertion."""


class FileError(Error, OSError):
    """A file cannot be read or written, or must not be."""


class LimitError(Error):
    """A limit of time, steps, depth or memory is reached."""


class Cancelled(Error):
    """The call was stopped."""


class MemoryError(Error, builtins.MemoryError):
    """The machine has not so much memory."""


class DeviceError(Error):
    """A device is lost, does not answer, or is not there."""


class HostError(Error):
    """A function of the host, `print` or `imports`, has failed; the exception
    that it raised is the cause of this one."""


class MisuseError(Error, ValueError):
    """A value does not fit to what it was given to."""


class BusyError(Error):
    """Another thread, or a call around this one, uses the session."""


class InternalError(Error):
    """A mistake in Unisono itself."""


_KINDS = (Error, ParseError, CheckError, RunError, FileError, LimitError,
          Cancelled, MemoryError, DeviceError, HostError, MisuseError,
          BusyError, InternalError)  # by UnisonoErrorKind


def _text(text):
    return (text or b"").decode(errors="replace")


def _place(place):
    if not place.file:
        return None
    return Place(_text(place.file), place.line, place.column, place.end_line,
                 place.end_column)


def _notes(error, index, count):
    for i in range(count):
        place, text = _library.Place(), ctypes.c_char_p()
        c.error_note(error, index, i, place, text)
        yield _place(place), _text(text.value)


def messages(error):
    """All messages of an error."""
    all_messages = []
    for i in range(c.error_message_count(error)):
        m = _library.Message()
        c.error_message(error, i, m)
        all_messages.append(Message(
            _text(m.code), SEVERITIES[m.severity], _text(m.text),
            _place(m.where), _text(m.label),
            tuple(_notes(error, i, m.note_count)),
            tuple(_text(c.error_fact(error, i, k))
                  for k in range(m.fact_count)), _text(m.help)))
    return tuple(all_messages)


def take(error):
    """The exception for an error, which is released."""
    try:
        kind = c.error_kind(error)
        cls = _KINDS[kind] if 0 <= kind < len(_KINDS) else Error
        return cls(_text(c.error_text(error, 0)).rstrip("\n"),
                   _text(c.error_summary(error)), messages(error))
    finally:
        c.error_release(error)
