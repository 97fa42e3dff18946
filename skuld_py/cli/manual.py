"""``skuld manual``: by topic, what does not fit into the help of a verb.

The pages are Markdown, made to be read as they stand: in a terminal, in a pager, on a web page. They are package
data beside the code (``skuld_py/manual``), so the manual is always that of the release it came with. A page begins
with its topic and one line about it, so that the list of topics says what the pages say.

Rejected: man pages, which a virtualenv does not show to ``man``; rendering, which a pipe would have to undo.
"""

from __future__ import annotations

import difflib
from importlib import resources

import click

from skuld_py.cli.options import json_option

TOPICS = ("installing", "guarantees", "tasks", "clients", "workers", "workflows", "datasource", "operating",
          "dashboard", "keys", "deploying", "archive", "wire", "speed", "comparison", "reading-the-code",
          "onyx-commands", "words")
"""In the order of reading; each is a page."""


def _topic(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The topic as it was given; one that is none is answered with what was probably meant."""
    if value is None or value in TOPICS:
        return value
    near = [topic for topic in TOPICS if value and value in topic] or difflib.get_close_matches(value, TOPICS, n=1)
    hint = f"did you mean {near[0]!r}? T" if near else "t"
    raise click.BadParameter(f"there is no topic {value!r}; {hint}here are: {', '.join(TOPICS)}", ctx, param)


def _offered(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [topic for topic in TOPICS if topic.startswith(incomplete)]


def page(topic: str) -> str:
    """The text of a topic."""
    return (resources.files("skuld_py") / "manual" / f"{topic}.md").read_text(encoding="utf-8")


def about(topic: str) -> str:
    """What a topic is about, in a line: the title of its page."""
    title, _, _ = page(topic).partition("\n")
    return title.partition(": ")[2]


@click.command()
@click.argument("topic", required=False, callback=_topic, shell_complete=_offered)
@json_option
def manual(topic: str | None, as_json: bool) -> None:
    """Show the page TOPIC of the manual; without one, list the topics.

    On a terminal a page is shown by the pager ($PAGER). Elsewhere it is plain text.

    \b
    Examples:
      skuld manual
      skuld manual guarantees
      skuld manual operating | grep -A 9 Upgrade
    """
    from skuld_py.cli.showing import print_json

    if topic is None:
        rows = [(each, about(each)) for each in TOPICS]
        if as_json:
            print_json({"topics": [{"topic": each, "about": words} for each, words in rows]})
            return
        widest = max(map(len, TOPICS))
        click.echo("".join(f"{each.ljust(widest)}  {words}\n" for each, words in rows), nl=False)
    elif as_json:
        print_json({"topic": topic, "about": about(topic), "text": page(topic)})
    else:
        click.echo_via_pager(page(topic).removesuffix("\n"))  # which it adds
