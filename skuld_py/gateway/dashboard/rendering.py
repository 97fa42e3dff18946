"""Pages as bytes: templates, what they may call, and the headers of every page.

Invariants: whatever a document holds is text on the page. All that a template prints is escaped, and first made
harmless: a character that prints nothing, or turns the direction of what follows, is shown as its escape. Only the
drawings of ``workflow.graph``, which escape by themselves, are markup. A page allows no script and no style but
the gateway's own files, by ``POLICY``; so a mistake in a template would show, and do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlencode

import attrs
import jinja2
from markupsafe import Markup
from starlette.responses import Response

from skuld_py import __version__
from skuld_py.client.json_text import harmless_text
from skuld_py.gateway.endpoint import HEADERS
from skuld_py.verbs.attention import offset_words
from skuld_py.verbs.words import many, said
from skuld_py.workflow.graph.svg import STYLE

ROOT = "/dashboard"
TEXT_CHARS, LINE_CHARS = 2_000, 120
"""Of a content on a page of its task, and in a row of a table; the whole is behind a link."""
_STYLE = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = ("default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self';"
          f" style-src 'self' 'sha256-{_STYLE}'; base-uri 'none'; frame-ancestors 'none'")
PAGE_HEADERS = {
    **HEADERS, "content-security-policy": POLICY, "x-frame-options": "DENY", "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin"}
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/?#&=%+-]{1,500}", re.ASCII)
KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@attrs.frozen
class Content:
    """Some bytes on a page: their text, or base64; ``is_cut``: there is more than that."""

    text: str
    size: int
    is_cut: bool
    is_text: bool


def page(template: str, context: Mapping[str, Any], code: int = 200) -> Response:
    """A page made of a template."""
    text = _environment().get_template(template).render(context)
    return Response(text, code, {**PAGE_HEADERS, "content-type": "text/html; charset=utf-8"})


@cache
def files() -> Mapping[str, tuple[bytes, str]]:
    """The files that pages load: by name, their bytes and their type."""
    found = {}
    for file in sorted(resources.files(__package__).joinpath("static").iterdir(), key=lambda each: each.name):
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            found[file.name] = (file.read_bytes(), kind)
    return found


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("skuld_py.gateway.dashboard"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_harmless,
        auto_reload=False)
    made.filters |= {"said": said, "at": at, "ago": ago, "number": number, "rate": rate, "size": size,
                     "drawing": Markup, "offset": offset_words, "cut": cut}
    made.globals |= {"file": file_path, "link": link, "content": content, "many": many, "spark": spark,
                     "version": __version__}
    return made


def _harmless(value: Any) -> Any:
    """What is printed: markup as it is, all else as harmless text."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return ""
    text = str(value)
    return text if text.isprintable() else harmless_text(text, is_one_line=False)


# -- what templates call -------------------------------------------------------------------------


def link(path: str, **query: Any) -> str:
    """The address of a page; what is None or empty is left out."""
    asked = [(name, str(value)) for name, values in query.items()
             for value in (values if isinstance(values, list | tuple) else [values]) if value not in (None, "")]
    return ROOT + path + (f"?{urlencode(asked)}" if asked else "")


@cache
def file_path(name: str) -> str:
    """The address of a file, another one for other bytes."""
    return f"{ROOT}/static/{name}?v={hashlib.sha256(files()[name][0]).hexdigest()[:12]}"


def content(document: Mapping[str, Any], name: str, most: int = TEXT_CHARS) -> Content | None:
    """The bytes under a name of a document; None if there are none."""
    exact = document.get(f"{name}_base64")
    if exact is None:
        return None
    text = document.get(name)
    whole = exact if text is None else text
    padding = len(exact) - len(exact.rstrip("="))
    return Content(whole[:most], len(exact) // 4 * 3 - padding, len(whole) > most, text is not None)


def cut(text: str, most: int = LINE_CHARS) -> str:
    """A text for a row."""
    return text if len(text) <= most else text[:most - 1] + "…"


def at(at_ms: int) -> Markup:
    """A time in UTC."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    return Markup('<time datetime="{}">{}</time>').format(moment.isoformat(), f"{moment:%Y-%m-%d %H:%M:%S}")


def ago(at_ms: int, now_ms: int) -> str:
    """How far a time is: ``3 s ago``, ``in 2 min``."""
    apart = said(abs(at_ms - now_ms) / 1000)
    return f"in {apart}" if at_ms > now_ms else f"{apart} ago"


def number(value: float | None) -> str:
    """With a comma between thousands."""
    return "" if value is None else f"{value:,}"


def rate(value: float | None) -> str:
    """So many in a second; a dash before there is a second look."""
    return "–" if value is None else f"{value:,.1f}"


def size(count: int) -> str:
    """Bytes, as people say them."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000 or unit == "MB":
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count = count / 1000  # type: ignore[assignment]
    raise AssertionError


def spark(text: str) -> Markup:
    """What a worker says of its Spark; an address in it, such as that of Spark's own pages, is a link."""
    def shown(word: str) -> Markup:
        bare = word.rstrip(",")
        if not _ADDRESS.fullmatch(bare):
            return Markup("{}").format(_harmless(word))
        return Markup('<a href="{0}" rel="noreferrer noopener">{0}</a>{1}').format(bare, word[len(bare):])
    return Markup(" ").join(map(shown, text.split()))
