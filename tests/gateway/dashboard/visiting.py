"""Looks at the dashboard of an application in this process, as a browser does: with cookies, links and forms."""

from __future__ import annotations

import asyncio
from html.parser import HTMLParser
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import attrs

from skuld_py.gateway.access import Bearer, Tokens, hash_of, new_token
from skuld_py.gateway.application import Gateway
from skuld_py.gateway.limits import Limits
from skuld_py.model.roles import Role
from skuld_py.testing import AsyncMemoryClient
from skuld_py.verbs.verb import Scope

ROOT = "/dashboard"
HOST = "127.0.0.1:13080"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{ 7*7 }}\u202e\u009b31m\x1b[31m"
"""Nothing of it may come to be markup, or to turn the direction of what follows."""


@attrs.frozen
class Seen:
    """An answer."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def tags(self) -> list[tuple[str, dict[str, str | None]]]:
        """The markup, as a browser reads it."""
        return _Reader(self.text).tags

    @property
    def words(self) -> str:
        """What is there to be read."""
        return " ".join(_Reader(self.text).words.split())

    def values(self, tag: str, name: str) -> list[str]:
        """An attribute of all tags of a kind."""
        return [value for kind, given in self.tags if kind == tag and (value := given.get(name)) is not None]

    @property
    def proof(self) -> str:
        return next(given["value"] or "" for kind, given in self.tags
                    if kind == "input" and given.get("name") == "proof")


class _Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.words += data


class Visitor:
    """A browser, an application, and the cluster behind it, which is in memory. ``tokens``: by name, their
    rights; without any, all is open."""

    def __init__(self, tokens: dict[str, Any] | None = None, *, is_secure: bool = False) -> None:
        self._runner = asyncio.Runner()
        self.cluster = self.do(self._made())
        self.tokens = {name: new_token() for name in tokens or ()}
        self.gateway = Gateway(self.cluster, None, Limits(), None, is_secure=is_secure)  # type: ignore[arg-type]
        if tokens is not None:
            self.rights(tokens)
        self.application = self.gateway.application()
        self.cookies: dict[str, str] = {}

    async def _made(self) -> AsyncMemoryClient:
        return AsyncMemoryClient()

    def rights(self, tokens: dict[str, Any]) -> None:
        """The tokens that count from now on."""
        self.gateway.tokens = Tokens({hash_of(self.tokens[name]): Bearer(name, **given)
                                      for name, given in tokens.items()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.do(self.cluster.close())
        self._runner.close()

    def do(self, work: Any) -> Any:
        return self._runner.run(work)

    def get(self, path: str, **headers: str) -> Seen:
        return self.send("GET", path, b"", headers)

    def post(self, path: str, form: dict[str, Any], **headers: str) -> Seen:
        body = urlencode(form, doseq=True).encode()
        return self.send("POST", path, body, {"content_type": "application/x-www-form-urlencoded", **headers})

    def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Seen:
        address = path if path.startswith("/v1") or path == "/" else ROOT + path
        answer: Seen = self.do(self._send(method, address, body, headers))
        if kept := answer.headers.get("set-cookie"):
            name, _, value = kept.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    async def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Seen:
        bare, _, query = path.partition("?")
        given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies and "cookie" not in given:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {"type": "http", "method": method, "path": bare, "raw_path": bare.encode(), "root_path": "",
                 "query_string": query.encode(), "scheme": "http", "http_version": "1.1",
                 "headers": [(name.encode(), value.encode()) for name, value in given.items()],
                 "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 13_080)}
        parts: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []

        async def receive() -> Any:
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.application(scope, receive, send)  # type: ignore[arg-type]
        found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        text = b"".join(part.get("body", b"") for part in sent[1:]).decode("utf-8", "surrogateescape")
        return Seen(sent[0]["status"], found, text)

    def sign_in(self, name: str, back: str = ROOT) -> Seen:
        page = self.get("/sign-in")
        return self.post("/sign-in", {"proof": page.proof, "token": self.tokens[name], "back": back})

    def act(self, verb: str, **asked: Any) -> Seen:
        """Open the page of an action and send its form."""
        return self.post(f"/act/{verb}", {"proof": self.get(f"/act/{verb}").proof, **asked})


ALL = {"scopes": frozenset(Scope)}
READER = {"scopes": frozenset({Scope.READ})}
LIMITED = {"scopes": frozenset(Scope), "queues": ("reports",)}
ADMIN = {"scopes": frozenset[Scope](), "roles": frozenset({Role.ADMIN})}

