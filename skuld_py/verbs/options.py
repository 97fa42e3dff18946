"""Every argument and option of a verb, once: its name, its kind, its default, and its words on the command line
(``help``) and over HTTP (``told``).

A kind says which values there are, and each door knows how they are written: seconds are a number over HTTP and
``10m`` on the command line, a claim is three fields there and two words here. Where the command line takes less,
or shows less of a range, ``typed`` says so. The bounds are those of ``model`` and ``config``, said again in
numbers: help must not wait for what it would take to import them; a test compares.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple

from skuld_py.errors import Refused

DAY_S = 24 * 3600.0
YEARS_10_S = 3_650 * DAY_S
LEASE_S, LOG_WAIT_S = 60.0, 30.0
SAFE_MAX = (1 << 53) - 1
STATES = ("waiting", "claimed", "completed", "scheduled", "blocked", "cancelled", "dead")


class Plain(Enum):
    """Kinds that need no parameters."""

    NAME = auto()
    HOLDER = auto()
    TEXT = auto()
    WORDS = auto()  # text of 1 to 255 bytes
    FLAG = auto()
    ID = auto()
    TOKEN = auto()
    CLAIM = auto()  # a task's id, its claim's token and the proof
    CALL = auto()  # a function's name, its arguments in order and by name; functions are given the payload
    JSON = auto()  # any value; what is typed is JSON where it is, else text
    BYTES = auto()  # over HTTP two fields, as text or as base64
    TIME = auto()  # over HTTP in ms since 1970; functions are given seconds, or a datetime
    PAST = auto()  # the same, in seconds
    STATES = auto()
    PAIRS = auto()
    OBJECT = auto()  # any JSON object; only HTTP has it


class Line(NamedTuple):
    """Text of ``least`` to ``most`` characters."""

    least: int
    most: int
    example: str = ""


class Whole(NamedTuple):
    """A whole number; None for no bound."""

    least: int | None = None
    most: int | None = None


class Number(NamedTuple):
    """Any number in a range."""

    least: float
    most: float


class Seconds(NamedTuple):
    """A span of time."""

    least: float = 0.0
    most: float = DAY_S


class Choice(NamedTuple):
    """One of these words."""

    words: tuple[str, ...]


class Request(NamedTuple):
    """What may be asked: its name and words in the OpenAPI document, and its options.

    ``checks`` are given what was asked over HTTP, by field, and raise ``Refused``; what the command line asks for
    the client checks. ``either`` says in the document of which fields exactly one must be given.
    """

    name: str
    words: str
    options: tuple[Option, ...] = ()
    either: tuple[str, ...] = ()
    checks: tuple[Callable[[Any], None], ...] = ()


class One(NamedTuple):
    """Options that belong together: an object over HTTP; on the command line, options like others."""

    of: Request


class Many(NamedTuple):
    """A list over HTTP; ``of`` ids, or objects of which the command line takes one."""

    of: Request | Plain
    least: int | None = 1
    most: int = 1_000


Kind = Plain | Line | Whole | Number | Seconds | Choice | One | Many


class Required(Enum):
    """No default: it must be given."""

    REQUIRED = auto()


REQUIRED = Required.REQUIRED


class Option(NamedTuple):
    """What a verb takes, by the name that its function knows.

    ``flag`` is how it is typed where that does not follow from the name; ``word`` stands for a value in help, and
    an argument, which ``is_word``, is typed as it. ``told``: None for the same words as ``help``. ``field`` is its
    name over HTTP where that is another one. ``shown`` is what help shows as the default where none can be typed.
    ``is_own``: each of many tasks may have another.
    """

    name: str
    kind: Kind
    default: Any = REQUIRED
    help: str = ""
    told: str | None = ""
    is_word: bool = False
    flag: str = ""
    word: str | None = None
    field: str = ""
    shown: str | bool = True
    typed: Kind | None = None
    is_own: bool = False


# -- queues, tasks and claims --------------------------------------------------------------------

QUEUE = Option("queue", Plain.NAME, is_word=True)
ANY_QUEUE = Option("queue", Plain.NAME, None, is_word=True, told="Of this queue; of all if left out.")
NAME = Option("name", Plain.NAME, is_word=True)
IDS = Option("ids", Many(Plain.ID), is_word=True, word="ID...")
CLAIM = Option("claim", Plain.CLAIM, is_word=True)
TOKEN = Option(
    "token", Plain.TOKEN, None, shown="all claims",
    help="Only the log of this claim.",
    told="Of this claim; of all if left out.")
IN_STATES = Option(
    "states", Plain.STATES, (), flag="--state", field="state",
    help="Only tasks in this state; may be given again, for one of several.")
FUNCTION = Option(
    "function", Line(1, 200, "shop:add"), None, shown="all", word="NAME",
    help="Only calls of this task function; all tasks are read for it.",
    told="Only calls of this task function. All tasks that are asked for otherwise are read for it: nodes do not"
         " look into payloads.")
ARGUMENT = Option(
    "argument", Line(1, 500, "day=2026-11-*"), None, shown="all", word="PATTERN",
    help="Only calls with an argument like this, VALUE or NAME=VALUE; * is any text.",
    told="Only calls with an argument like this pattern, VALUE or NAME=VALUE: * is any text, large letters are"
         " like small ones.")
HEADER = Option(
    "header", Line(1, 500, "tenant=acme*"), None, shown="all", word="PATTERN",
    help="Only tasks with a header like this, NAME=VALUE; * is any text.",
    told="Only tasks with a header like this pattern, NAME=VALUE: * is any text, large letters are like small"
         " ones.")
ERROR = Option(
    "error", Line(1, 500, "*timeout*"), None, shown="all", word="PATTERN",
    help="Only tasks whose last error is like this; * is any text, large letters are like small ones.",
    told="Only tasks whose last error is like this pattern: * is any text, large letters are like small ones.")
OF_KEY = Option(
    "key", Plain.WORDS, None, word="KEY", shown="all",
    help="Only tasks of this ordering key.", told="Only tasks of this ordering key.")
FILTERS = tuple(each.name for each in (FUNCTION, ARGUMENT, HEADER, ERROR))
"""What tasks are read for, and most of them left out."""
SINCE = Option(
    "since", Plain.PAST, None, field="since_s", shown="the beginning",
    help="Only what was enqueued then or later: an age as 2h, or 2026-12-01T08:00+01:00.",
    told="Only what was enqueued then or later, in seconds since 1970.")
UNTIL = Option(
    "until", Plain.PAST, None, field="until_s", shown="now",
    help="Only what was enqueued before then.",
    told="Only what was enqueued before then, in seconds since 1970.")
LEASE = Option("lease_s", Seconds(0.001, DAY_S), LEASE_S, help="How long to hold them.", told="Seconds.")
DELAY = Seconds(0, 10 * 366 * DAY_S)
RETRY_IN = Option(
    "retry_in_s", DELAY, None, shown="as the task's retries say",
    help="When it may be claimed again.",
    told="When to try again; by the task's own policy if left out.")
RESULT = Option("result", Plain.BYTES, b"", word="TEXT", shown="none", help="What came of it.")
VALUE = Option(
    "value", Plain.JSON, None, word="VALUE", shown="none",
    help="The same as a value that readers get back: JSON where it is, else text.",
    told="What came of it as a value, any JSON, that readers get back; a result is bytes to them. Not both.")
COPIES = Option(
    "w", Whole(1, 9), None, shown="a majority", typed=Whole(1),
    help="Answer when this many nodes have it on disk.",
    told="Answer when this many nodes have it on disk; a majority if left out.")
WAIT = Option("wait_s", Seconds(0, 3600), 0.0, typed=Seconds())

# -- what a task is enqueued with ----------------------------------------------------------------

PAYLOAD = Option("payload", Plain.BYTES, is_own=True, told="The content")
CONTENT_PAYLOAD = PAYLOAD._replace(default=None)
CALLED = Option(
    "called", Plain.CALL, None, is_own=True,
    help="Instead of PAYLOAD, call this task function, with each --arg: a value, or name=value; values are JSON"
         " where they are, else text.",
    told="Instead of a payload: the task function to call, by the name that workers know")
PRIORITY = Option(
    "priority", Whole(-(1 << 31), (1 << 31) - 1), 0, typed=Whole(),
    help="Higher goes first; 32 bits, signed.",
    told="Higher goes first.")
ID = Option(
    "id", Plain.ID, None, shown=False, is_own=True,
    help="The task's id: the same id and payload again is the same task.",
    told="Chosen by the caller (see GET /v1/ids); then the request may be sent again and again, and makes one"
         " task. Other content under a used id is refused with 409.")
NOT_BEFORE = Option(
    "not_before", Plain.TIME, None, field="not_before_ms", shown="at once", is_own=True,
    help="When it may be claimed: from now, as 10m, or a time, as 2026-12-01T08:00+01:00.",
    told="Not to be claimed before.")
DELAY_S = Option(
    "delay_s", Seconds(0, YEARS_10_S), None, shown="none", is_own=True,
    help="How long from now on nobody may claim it; --not-before says the same, or a time.",
    told="Not to be claimed for so many seconds from now. With an id give not_before_ms, which is the same when it"
         " is sent again.")
EXPIRES = Option(
    "expires", Plain.TIME, None, field="expires_ms", shown="never", is_own=True,
    help="Nobody is to claim it any more then. With --id, give times, which are the same again.",
    told="Not to be claimed from then on: the task is dead. What runs then is not stopped.")
KEY = Option(
    "key", Plain.WORDS, None, word="KEY", shown="none", is_own=True,
    help="Tasks of one key are worked on one after another, the oldest first.",
    told="Tasks of one queue and key are worked on one after another, the oldest first.")
UNIQUE = Option(
    "unique", Plain.WORDS, None, word="NAME", shown="none", is_own=True,
    help="Of each name there is one task in a window; the second gets the id of the first.",
    told="Of each name of a queue there is one task in a window: the second gets the id of the first.")
UNIQUE_WINDOW = Option(
    "unique_window_s", Seconds(0.001, 6 * DAY_S), 3_600.0, shown="1h",
    help="How long a window is; windows follow the clock.",
    told=None)
DEPS = Option(
    "deps", Many(Plain.ID, None), None, flag="--dep", word="ID", is_own=True,
    help="A task that must end before this one is claimed; may be given several times.",
    told="Tasks that must end before this one is claimed.")
ON_DEP_FAILURE = Option(
    "on_dep_failure", Choice(("wait", "fail", "ignore")), "wait", shown="wait",
    help="What becomes of it when such a task is dead or cancelled.",
    told="What becomes of a task when one that it waits for is dead or cancelled.")
DEP_WAIT = Option(
    "dep_wait_s", Seconds(0, YEARS_10_S), DAY_S, shown="24h",
    help="How long it waits for such a task that nobody knows.",
    told="How long it waits for one that nobody knows.")
HEADERS = Option(
    "headers", Plain.PAIRS, None, flag="--header",
    help="Told to who claims it, besides the payload; may be given several times.",
    told="Words for readers and workers beside the payload; at most 4 KiB.")

BACKOFF = Seconds(0, ((1 << 32) - 1) / 1000)
MAX_ATTEMPTS = Option(
    "max_attempts", Whole(1, 1_000), 25, shown="25",
    help="How often it is claimed before it is dead, when each attempt fails or lapses.",
    told="Claims that may fail or lapse; then it is dead.")
POLICY = (
    MAX_ATTEMPTS,
    Option("backoff_s", BACKOFF, 1.0, shown="1s", help="How long it rests after its first failure."),
    Option(
        "factor", Number(1, 655.35), 2.0, shown="2",
        help="How many times as long after each further failure."),
    Option("max_backoff_s", BACKOFF, 3_600.0, shown="1h", help="How long at most."),
    Option("jitter", Number(0, 1), 0.1, shown="0.1", help="Which part of it more or less, at random."),
)


def _check_backoffs(asked: Any) -> None:
    if asked.backoff_s > asked.max_backoff_s:
        raise Refused("bad_retry", "max_backoff_s: is less than backoff_s")


RETRY = Option("retry", One(Request(
    "Policy", "How often and when a task is tried again. After the nth failure it rests for the least of"
    " max_backoff_s and\nbackoff_s * factor ** (n - 1), give or take the part jitter of it.", POLICY,
    checks=(_check_backoffs,))),
    None)
