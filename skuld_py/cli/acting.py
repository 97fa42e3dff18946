"""How a verb that does one thing to a cluster is made: of a function of the client, and nothing else.

    @client_verb
    @claim_arguments
    def release(client, claim):
        "Give the claim ID TOKEN back."
        client.release(claim)
        return "released", {"is_released": True}

The function does it and says what was done, in words and as facts; ``--nodes``, ``--timeout`` and ``--json``, the
connection, and how it is all shown, are the same for every such verb. The docstring is the verb's help.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import CLAIM_TOKEN, TASK_ID

Done = tuple[str, dict[str, object]]
"""What was done: words for people, facts for programs."""
Act = Callable[..., Done]

_PARAMETERS = "__click_params__"


def client_verb(act: Act) -> click.Command:
    """A verb: ``act`` is given the client, and the verb's own arguments and options by name."""

    @wraps(act)
    def verb(nodes: str, timeout_s: float, as_json: bool, **given: Any) -> None:
        from skuld_py.cli.showing import print_event

        with connected(nodes, timeout_s) as client:
            words, facts = act(client, **given)
        print_event(as_json, words, **facts)

    own = vars(verb).pop(_PARAMETERS, [])
    client_options(verb)
    vars(verb)[_PARAMETERS].extend(own)  # so that help names its own options first
    return click.command(verb)


def claim_arguments(act: Act) -> Act:
    """``ID TOKEN`` in front of whatever else a verb takes; ``act`` is given the claim that they name."""

    @wraps(act)
    def named(client: Any, *, task_id: bytes, token: tuple[int, bytes], **given: Any) -> Done:
        from skuld_py.client.client import ClaimName
        from skuld_py.model.ids import to_text

        words, facts = act(client, ClaimName(task_id, *token), **given)
        return words, {"id": to_text(task_id), "token": str(token[0]), **facts}

    return click.argument("task_id", metavar="ID", type=TASK_ID)(
        click.argument("token", metavar="TOKEN", type=CLAIM_TOKEN)(named))
