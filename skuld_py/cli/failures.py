"""How a verb fails: one line on standard error, or one JSON document with ``--json``, and an exit status.

Exit statuses, for scripts: 0 done; 1 refused, it did not happen; 2 the command line, the environment or the
configuration file is wrong, and nothing was tried; 3 uncertain, it may have happened; 4 refused to a verb that is
a service, for something on its own machine, so that it is of no use to start it again; 130 Ctrl-C. The line ends
in a stable code in brackets. The document is ``{"code", "message", "outcome", "facts"}``, the outcome one of
refused, usage and uncertain. Anything that is no ``SkuldError`` is a bug of ours and keeps its traceback; but an
import that failed for want of an extra is refused by name.

A wrong value is told with where it came from, unless that is the command line: a bad lease in the profile of a
machine is hard to find. ``told`` is the only place that translates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import click
from click.core import ParameterSource

from skuld_py.cli.settings import BadConfig, Settings
from skuld_py.cli.showing import harmless
from skuld_py.cli.twins import key_of, variable_in_use
from skuld_py.cli.variables import BadVariable
from skuld_py.errors import KEY_CODES, Fact, SkuldError, Uncertain
from skuld_py.extras import as_missing

REFUSED, MISUSED, UNCERTAIN, LASTING, INTERRUPTED = 1, 2, 3, 4, 130
SERVICES = ("node", "gateway", "worker")
LASTING_CODES = frozenset({
    "bad_key_file", "exposed_key", "no_key", "bad_password_file", "bad_tokens", "bad_certificate",
    *KEY_CODES, "old_cluster_key", "revoked_key", "zookeeper_denied",
    "wrong_data", "newer_data", "data_unusable", "other_parameters", "unknown_rules",
    "bad_name", "bad_host", "bad_hosts", "bad_port", "bad_address", "no_nodes", "insecure_host", "loopback_name",
    "no_address", "unheard_address", "address_in_use", "missing_extra", "old_libzmq",
    "bad_metrics", "bad_timing", "bad_app", "no_app", "no_tasks",
    "unknown_app", "bad_kinds", "no_such_directory", "bad_master", "bad_setting", "no_such_file"})
"""What a service refuses to start with until somebody changes a key, a file, an option or the data of its machine.
Not what passes by itself (a port in use), nor what others can mend (no such cluster, TLS of ZooKeeper's)."""

_ARGUMENTS, _VERB, _IS_JSON, _SETTINGS = (f"skuld.{name}" for name in ("arguments", "verb", "json", "settings"))
CHARS_MAX = 600

_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""Help for a command without arguments, which click 8.2 and later raise."""
_UNITS = ("_ms", "_s")


class Failure(click.ClickException):
    """A ``SkuldError`` on its way to the terminal: it did not happen."""

    exit_code = REFUSED
    outcome = "refused"

    def __init__(self, code: str, message: str, facts: Mapping[str, Fact], is_json: bool) -> None:
        super().__init__(message)
        self._code = code
        self._facts = facts
        self._is_json = is_json

    def show(self, file: IO[Any] | None = None) -> None:
        """One line, or one document."""
        document = {"code": self._code, "message": self.message, "outcome": self.outcome,
                    "facts": {name: _plain(name, value) for name, value in self._facts.items()}}
        line = f"error: {harmless(self.message, is_one_line=False)} [{self._code}]"
        click.echo(json.dumps(document) if self._is_json else line, file=file, err=True)


class Lasting(Failure):
    """It did not happen, nor will it until somebody does something here."""

    exit_code = LASTING


class Misuse(Failure):
    """Nothing was tried: what was asked for makes no sense."""

    exit_code = MISUSED
    outcome = "usage"


class Doubt(Failure):
    """It may have happened."""

    exit_code = UNCERTAIN
    outcome = "uncertain"


# -- what is known of the run --------------------------------------------------------------------


def note_arguments(ctx: click.Context, arguments: list[str]) -> None:
    """What was typed behind the program's name."""
    ctx.meta[_ARGUMENTS] = list(arguments)


def note_settings(ctx: click.Context, settings: Settings) -> None:
    """The configuration file in force."""
    ctx.meta[_SETTINGS] = settings


def settings_of(ctx: click.Context) -> Settings:
    """The configuration file in force."""
    found: Settings = ctx.meta[_SETTINGS]
    return found


def note_verb(ctx: click.Context, is_json: bool) -> None:
    """The verb that runs, and whether it was asked for JSON."""
    ctx.meta[_VERB], ctx.meta[_IS_JSON] = ctx, is_json


def is_about_help(ctx: click.Context) -> bool:
    """Whether help was asked for; it is given whatever the configuration says."""
    return not {"-h", "--help"}.isdisjoint(ctx.meta.get(_ARGUMENTS, ()))


@contextmanager
def told(ctx: click.Context) -> Iterator[None]:
    """Turn what is raised inside into what a person or a program can read."""
    meta = ctx.meta
    try:
        yield
    except SkuldError as error:
        raise _kind(meta, error)(error.code, error.message + _origin_of_field(meta, error.message), error.facts,
                   _is_json(meta)) from error
    except ModuleNotFoundError as error:
        missing = as_missing(error, _shown_verb(meta))
        if missing is None:
            raise
        raise _kind(meta, missing)(missing.code, missing.message, missing.facts, _is_json(meta)) from error
    except click.UsageError as error:
        _name_origin(meta, error)
        given = error.format_message()
        # click sets the choices for what is missing below each other
        words = " ".join(given.split()) if isinstance(error, click.MissingParameter) else given
        if _is_json(meta):
            raise Misuse("usage", _shortened(words), {}, True) from error
        if not isinstance(error, _HELP) and harmless(_shortened(words)) != given:
            raise click.UsageError(harmless(_shortened(words)), error.ctx) from error
        raise


def _kind(meta: Mapping[str, Any], error: SkuldError) -> type[Failure]:
    if isinstance(error, BadConfig | BadVariable):
        return Misuse
    if isinstance(error, Uncertain):
        return Doubt
    verb = meta.get(_VERB)
    is_service = isinstance(verb, click.Context) and verb.command.name in SERVICES
    return Lasting if is_service and error.code in LASTING_CODES else Failure


def tell_interrupt(ctx: click.Context) -> None:
    """An end of the line that Ctrl-C was typed in, or a document; what was under way may have happened."""
    if _is_json(ctx.meta):
        Doubt("interrupted", "interrupted; what was under way may have happened", {}, True).show()
    else:
        click.echo(err=True)


def _shown_verb(meta: Mapping[str, Any]) -> str:
    """The verb that was typed, with the program's name before it."""
    typed = [word for word in meta.get(_ARGUMENTS, ()) if not word.startswith("-")]
    return " ".join(["skuld", *typed[:1]])


def _shortened(words: str) -> str:
    """The message, shortened: it repeats what was typed, but not 100 KB of it; its end says what would be
    right."""
    if len(words) <= CHARS_MAX:
        return words
    return words[: CHARS_MAX // 2] + " … " + words[-CHARS_MAX // 2 :]


def _is_json(meta: Mapping[str, Any]) -> bool:
    """Whether JSON was asked for: the verb knows; before it runs, what was typed must do."""
    return bool(meta.get(_IS_JSON)) or "--json" in meta.get(_ARGUMENTS, ())


def _name_origin(meta: Mapping[str, Any], error: click.UsageError) -> None:
    if isinstance(error, click.BadParameter) and isinstance(error.param, click.Option) and error.ctx is not None:
        origin = _origin(meta, error.ctx, error.param)
        if origin:
            error.param_hint = f"{error.param.get_error_hint(error.ctx)} (from {origin})"


def _origin_of_field(meta: Mapping[str, Any], message: str) -> str:
    """Where the field came from that a refusal names in front: ``cluster: 'a/b' is not a name``."""
    verb = meta.get(_VERB)
    field = message.partition(":")[0]
    for unit in _UNITS:
        field = field.removesuffix(unit)
    if not isinstance(verb, click.Context) or not field.replace("_", "").replace("-", "").isalnum():
        return ""
    wanted = field.replace("_", "-")
    for option in verb.command.params:
        if isinstance(option, click.Option) and key_of(option) in (wanted, wanted + "s"):
            origin = _origin(meta, verb, option)
            return f" (from {origin})" if origin else ""
    return ""


def _origin(meta: Mapping[str, Any], ctx: click.Context, option: click.Option) -> str:
    """A variable, or a place in the file; empty when it was typed, or is the default."""
    source = ctx.get_parameter_source(option.name or "")
    if source is ParameterSource.ENVIRONMENT:
        return f"${variable_in_use(option)}"
    settings = meta.get(_SETTINGS)
    if source is ParameterSource.DEFAULT_MAP and isinstance(settings, Settings):
        path = settings.path_of(_words(ctx), key_of(option))
        return f"{settings.where(path)}: {'.'.join(path)}"
    return ""


def _words(ctx: click.Context) -> tuple[str, ...]:
    """The verb's words, without the program's name."""
    words: tuple[str, ...] = ()
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        words, at = ((at.info_name or ""), *words), at.parent
    return words


def _plain(name: str, value: Fact) -> str | int:
    """A fact as JSON can have it: a token as text, the bytes of an id as people write them."""
    if not isinstance(value, bytes):
        return str(value) if name == "token" else value
    from skuld_py.model.ids import ID_BYTES, to_text

    return to_text(value) if len(value) == ID_BYTES else value.hex()
