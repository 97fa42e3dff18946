"""How verbs of the table become commands: options are typed, a client acts, the answer is printed.

``taking`` gives a function the options of the table, by their names, as any other door gives them; commands that
are made by hand use it too. Seconds are durations here, a claim is the words ``ID TOKEN``, and where HTTP takes
many the command line takes one. An option without help is for HTTP alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, wraps
from inspect import cleandoc
from typing import Any

import click

from skuld_py.cli.failures import REFUSED
from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import CLAIM_TOKEN, HEADER, MOMENT, PAST, TASK_ID, TOKEN, Duration
from skuld_py.verbs.documents import Overseen
from skuld_py.verbs.options import (
    REQUIRED,
    STATES,
    Choice,
    Kind,
    Many,
    Number,
    One,
    Option,
    Plain,
    Request,
    Seconds,
    Whole,
)
from skuld_py.verbs.table import GROUPS, VERBS
from skuld_py.verbs.verb import Given, Verb, done_at_once

Command = Callable[..., Any]
WHEN_REFUSED = "\n\nWhere a partition refuses and none is changed, it says why, and ends with exit status 1."
_TYPES: Mapping[Kind, click.ParamType[Any, Any]] = {
    Plain.ID: TASK_ID, Plain.TOKEN: TOKEN, Plain.TIME: MOMENT, Plain.PAST: PAST, Plain.PAIRS: HEADER,
    Plain.STATES: click.Choice(STATES)}


@cache
def command_of(word: str) -> click.Command:
    """The command that the table makes of this word, or of those that begin with it."""
    if word not in GROUPS:
        return made_of(next(verb for verb in VERBS if verb.command == word))
    group = click.Group(word, help=GROUPS[word])
    for verb in VERBS:
        if verb.command.startswith(f"{word} "):
            group.add_command(made_of(verb))
    return group


def made_of(verb: Verb) -> click.Command:
    """The command of a verb that a function does."""
    act, says = verb.act, verb.says
    assert act is not None and says is not None, verb.name

    @taking(*verb.asks.options)
    @client_options
    def run(nodes: str, timeout_s: float, as_json: bool, **given: Any) -> None:
        from skuld_py.cli.showing import print_event, show_progress

        with connected(nodes, timeout_s) as client:
            done = done_at_once(act, client, {**given, "progress": show_progress} if verb.is_long else given)
        words, facts = says(done, given)
        print_event(as_json, words, **_claim_in(given), **facts)
        if verb.answers is Overseen:
            leave_if_refused(facts)

    help_text = cleandoc(act.__doc__ or "") + (WHEN_REFUSED if verb.answers is Overseen else "")
    return click.command(verb.command.split()[-1], help=help_text)(run)


def leave_if_refused(done: Mapping[str, Any]) -> None:
    """End as refused where a wish was refused of partitions and changed none. Why is printed by then."""
    if done["refused"] and not done["changed"]:
        click.get_current_context().exit(REFUSED)


def taking(*options: Option) -> Callable[[Command], Command]:
    """Arguments and options for a command; its function is given them by their names in the table."""
    known = [option for option in options if _typed_names(option)]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def taken(*fixed: Any, **typed: Any) -> Any:
            given = {option.name: _value_of(option, typed) for option in known}
            for name in (name for option in known for name in _typed_names(option)):
                del typed[name]
            return command(*fixed, **typed, **given)

        for decorator in reversed([*_decorators(known)]):
            decorator(taken)
        return taken
    return decorate


# -- what is typed -------------------------------------------------------------------------------


def _decorators(options: Iterable[Option]) -> Iterator[Callable[[Command], Command]]:
    for option in options:
        match option.kind:
            case Plain.CLAIM:
                yield click.argument("task_id", metavar="ID", type=TASK_ID)
                yield click.argument("token", metavar="TOKEN", type=CLAIM_TOKEN)
            case Plain.CALL:
                yield click.option("--call", "call", metavar="FUNCTION", help=option.help)
                yield click.option("--arg", "args", metavar="VALUE", multiple=True,
                                   help="An argument of --call; may be given several times.")
            case One(of) | Many(Request() as of):
                yield from _decorators(of.options)
            case _:
                yield _argument(option) if option.is_word else _option(option)


def _argument(option: Option) -> Callable[[Command], Command]:
    is_wanted = option.default is REQUIRED
    given: dict[str, Any] = {"default": ""} if option.kind is Plain.BYTES and not is_wanted else {}
    return click.argument(option.name, metavar=option.word, type=_type(option.kind), required=is_wanted,
                          nargs=-1 if isinstance(option.kind, Many) else 1, **given)


def _option(option: Option) -> Callable[[Command], Command]:
    kind = option.typed or option.kind
    flags = option.flag or "--" + option.name.removesuffix("_s").replace("_", "-")
    if kind is Plain.FLAG:
        return click.option(*flags.split("/"), option.name, is_flag=True, show_default=False, help=option.help)
    is_many = kind in (Plain.PAIRS, Plain.STATES) or isinstance(kind, Many)
    if option.default is REQUIRED:
        return click.option(flags, option.name, type=_type(kind), multiple=is_many, help=option.help,
                            required=True, metavar=option.word)
    default = _typed_default(option) if option.shown is True and not is_many else None
    return click.option(
        flags, option.name, type=_type(kind), multiple=is_many, help=option.help, default=default,
        metavar="KEY=VALUE" if kind is Plain.PAIRS else option.word,
        show_default=None if option.shown is True else option.shown)


def _typed_default(option: Option) -> Any:
    if not isinstance(option.kind, Seconds) or option.default is None:
        return option.default
    hours, rest = divmod(option.default, 3600)
    return f"{hours:g}h" if hours and not rest else f"{option.default:g}s"


def _type(kind: Kind) -> click.ParamType[Any, Any] | type[int] | None:
    match kind:
        case Whole(None, None):
            return int
        case Whole(least, most):
            return click.IntRange(least, most)
        case Number(least, most):
            return click.FloatRange(least, most)
        case Seconds(least, most):
            return Duration(least, most)
        case Choice(words):
            return click.Choice(words)
        case Many(Plain() as of):
            return _type(of)
        case _:
            return _TYPES.get(kind)


# -- what it means -------------------------------------------------------------------------------


def _typed_names(option: Option) -> tuple[str, ...]:
    match option.kind:
        case Plain.CLAIM:
            return "task_id", "token"
        case Plain.CALL:
            return "call", "args"
        case One(of) | Many(Request() as of):
            return tuple(name for inner in of.options for name in _typed_names(inner))
        case _:
            return (option.name,) if option.is_word or option.help else ()


def _value_of(option: Option, typed: Given) -> Any:
    match option.kind:
        case Plain.CLAIM:
            from skuld_py.client.claims import HeldClaim

            return HeldClaim(typed["task_id"], *typed["token"])
        case Plain.CALL:
            return called(typed["call"], typed["args"], "--arg")
        case Many(Request() as of):
            return [{inner.name: _value_of(inner, typed) for inner in of.options}]
        case One(of):
            is_given = any(typed[inner.name] is not None for inner in of.options)
            return {inner.name: _value_of(inner, typed) for inner in of.options} if is_given else option.default
    value = typed[option.name]
    if value is None or value == ():
        return option.default
    match option.kind:
        case Plain.BYTES | Plain.TEXT:
            return bytes_of(value)
        case Plain.JSON:
            from skuld_py.calls.typed import value_of

            return value_of(value)
        case Plain.PAIRS:
            return _pairs(value)
        case Many():
            return list(value)
        case _:
            return value


def bytes_of(typed: str) -> bytes:
    """The bytes that were typed, UTF-8 or not."""
    return typed.encode("utf-8", "surrogateescape")


def called(name: str | None, words: Sequence[str], where: str) -> bytes | None:
    """The payload of the call that was typed, if one was."""
    from skuld_py.calls.payloads import call
    from skuld_py.calls.typed import arguments_of

    if name is None:
        if words:
            raise click.UsageError(f"{where} is an argument of --call; name the function.")
        return None
    args, kwargs = arguments_of(words)
    return call(name, *args, **kwargs)


def _pairs(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise click.UsageError(f"--header {twice}=... is given twice; keep one of them.")
    return made


def _claim_in(given: Given) -> dict[str, str]:
    """Which claim it was about, where it was about one."""
    from skuld_py.verbs.documents import id_text

    held = given.get("claim") or next((each["claim"] for each in given.get("claims", ())), None)
    return {} if held is None else {"id": id_text(held.id), "token": str(held.token)}
