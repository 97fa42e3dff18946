"""The dashboard's paths, and the gates before them.

The gates are those of the verbs, in the same order, but that a cookie shows who asks: who has none is sent to sign
in. What changes something comes as a form with the proof of its session, by POST; that a browser says where a form
comes from is looked at besides. Each such request is in the gateway's log, with who asked, for what, and what came
of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from skuld_py.gateway import access
from skuld_py.gateway.dashboard import cluster, flows, forms, tasks
from skuld_py.gateway.dashboard.looking import ACTIONS, Look
from skuld_py.gateway.dashboard.pages import Page
from skuld_py.gateway.dashboard.rates import Rates
from skuld_py.gateway.dashboard.rendering import PAGE_HEADERS, ROOT, files, page
from skuld_py.gateway.dashboard.sessions import LIFE_MS, Session, Sessions
from skuld_py.gateway.endpoint import Endpoint
from skuld_py.gateway.problems import Problem, refusal
from skuld_py.verbs.verb import Verb

if TYPE_CHECKING:
    from skuld_py.gateway.application import Gateway

SIGN_IN = f"{ROOT}/sign-in"
SECTIONS = ("Overview", "Queues", "Tasks", "Workflows", "Schedules", "Limits", "Workers", "Partitions", "History",
            "Members", "API")
FILE_AGE_S = 365 * 24 * 3600


class Dashboard:
    """The pages of a gateway. ``document``: its OpenAPI document."""

    def __init__(self, gateway: Gateway, document: Mapping[str, Any]) -> None:
        self.gateway = gateway
        self.sessions = Sessions()
        self.pages = (*cluster.pages(Rates(), document), *tasks.PAGES, *flows.PAGES)
        named = {each.section: each for each in self.pages if each.section}
        self.sections = [named[section] for section in SECTIONS]

    def routes(self) -> list[Route]:
        """All paths."""
        made: list[Route] = [Route("/", _Front(self.gateway, "/")),
                             Route(f"{ROOT}/static/{{name}}", _File(self.gateway, f"{ROOT}/static")),
                             Route(SIGN_IN, _SignIn(self, SIGN_IN)),
                             Route(f"{ROOT}/sign-out", _SignOut(self, f"{ROOT}/sign-out")),
                             Route(f"{ROOT}/act/{{verb}}", _Act(self, f"{ROOT}/act/{{verb}}"))]
        return [*made, *(Route(ROOT + each.path, _Shown(self, each)) for each in self.pages)]

    # -- who looks -----------------------------------------------------------------------------

    def cookie(self, request: Request) -> str:
        """The cookie's name: browsers send those of one port to all ports of a machine."""
        server = request.scope.get("server") or ("", 0)
        return f"{'__Secure-' if self.gateway.is_secure else ''}skuld-{server[1] or 0}"

    def session(self, request: Request) -> Session | None:
        """The session that a request shows."""
        return self.sessions.read(request.cookies.get(self.cookie(request), ""), _now_ms())

    def bearer(self, session: Session) -> access.Bearer | None:
        """Who that is; None for somebody who must sign in first."""
        if self.gateway.tokens is None:
            return access.ANYBODY
        found = self.gateway.tokens.marked(session.mark) if session.mark else None
        return found if found is not None and found.is_valid(_now_ms()) else None

    def keep(self, request: Request, response: Response, session: Session) -> Response:
        """Have the browser show this session from now on."""
        response.set_cookie(self.cookie(request), self.sessions.text(session), max_age=LIFE_MS // 1000, path=ROOT,
                            secure=self.gateway.is_secure, httponly=True, samesite="strict")
        return response

    def context(self, request: Request, look: Look | None, session: Session, **more: Any) -> dict[str, Any]:
        """What every template may use."""
        return {"look": look, "sections": self.sections, "here": more.pop("here", None),
                "is_open": self.gateway.tokens is None, "proof": self.sessions.proof(session),
                "now_ms": _now_ms(), "number_of_request": request.state.id, **more}

    def check_form(self, request: Request, session: Session, form: forms.Given) -> None:
        """Refuse a form that no page of ours made for this session."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin")
        host = request.headers.get("host")
        is_ours = site == "same-origin" and (origin is None or urlsplit(origin).netloc == host)
        if not is_ours or not self.sessions.is_proof(session, forms.one(form, "proof")):
            raise refusal("forbidden_form", "proof: this form was not made for this session; open the page again,"
                          " and send it from there", field="proof")


class _Here(Endpoint):
    """A path of the dashboard: what goes wrong is a page, too."""

    methods: ClassVar[tuple[str, ...]] = ("GET", "HEAD")

    def __init__(self, dashboard: Dashboard, route: str) -> None:
        super().__init__(dashboard.gateway, route)
        self._dashboard = dashboard

    async def _answer(self, request: Request, places: ExitStack) -> Response:
        if request.method not in self.methods:
            raise refusal("method_not_allowed", f"method: {', '.join(self.methods)} is what this path takes",
                          field="method", headers={"Allow": ", ".join(self.methods)})
        found = self._dashboard.session(request)
        session = found or self._dashboard.sessions.begin("", _now_ms())
        bearer = self._dashboard.bearer(session)
        request.state.bearer = bearer.name if bearer is not None else "-"
        self._gateway.enter(request, bearer or access.ANYBODY, places)
        made = await self._made(request, session, bearer)
        return made if found is not None else self._dashboard.keep(request, made, session)

    async def _made(self, request: Request, session: Session, bearer: access.Bearer | None) -> Response:
        if bearer is None:
            if request.method not in ("GET", "HEAD"):
                raise refusal("unauthorized", "session: it is over; sign in and send the form again",
                              field="session")
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return _sent_to(f"{SIGN_IN}?{_next(path)}")
        look = Look(self._gateway, request, bearer, session, self._dashboard.sessions.proof(session), _now_ms(),
                    forms.query_of(request))
        return await self._shown(look)

    async def _shown(self, look: Look) -> Response:
        raise NotImplementedError

    def _failure(self, request: Request, problem: Problem) -> Response:
        session = self._dashboard.session(request) or self._dashboard.sessions.begin("", _now_ms())
        context = self._dashboard.context(request, None, session, problem=problem)
        made = page("problem.html", context, problem.status)
        made.headers.update(problem.headers)
        return made


class _Shown(_Here):
    """A page."""

    def __init__(self, dashboard: Dashboard, shown: Page) -> None:
        super().__init__(dashboard, ROOT + shown.path)
        self._page = shown

    async def _shown(self, look: Look) -> Response:
        made = await self._page.make(look)
        if isinstance(made, Response):
            return made
        return page(self._page.template, self._dashboard.context(look.request, look, look.session, here=self._page,
                                                                 **made))


class _Act(_Here):
    """A verb that changes something: what it will do, by GET; by POST it is done."""

    methods = ("GET", "HEAD", "POST")

    async def _shown(self, look: Look) -> Response:
        verb = ACTIONS.get(look.request.path_params["verb"])
        if verb is None:
            raise refusal("no_such_route", "there is no such action; the pages lead to those there are",
                          field="path")
        if look.request.method != "POST":
            return await self._asked(look, verb, look.query)
        form = await forms.body_of(look.request)
        self._dashboard.check_form(look.request, look.session, form)
        return await self._done(look, verb, form)

    async def _asked(self, look: Look, verb: Verb, given: forms.Given, problem: Problem | None = None) -> Response:
        about = await tasks.about(look, given)
        return page("act.html", self._dashboard.context(
            look.request, look, look.session, verb=verb, words=_words(verb), fields=forms.fields_of(verb),
            given=given, about=about, problem=problem, back=_back(given)),
            200 if problem is None else problem.status)

    async def _done(self, look: Look, verb: Verb, form: forms.Given) -> Response:
        asked = forms.asked_of(verb, form)

        def note(came: str) -> None:
            self._gateway.journal.note_action(look.request.state.id, came, verb=verb.name, asked=asked,
                                              bearer=look.bearer.name, address=_address(look.request))

        try:
            done = await look.ask(verb.name, **asked)
        except Problem as problem:
            note(f"{problem.outcome}: {problem.code}")
            return await self._asked(look, verb, form, problem)
        except BaseException:
            note("uncertain: internal")
            raise
        note("done")
        given = {option.name: asked.get(option.field or option.name, option.default)
                 for option in verb.asks.options}
        words, facts = verb.says(done, given) if verb.says is not None else ("It is done.", done)
        return page("done.html", self._dashboard.context(
            look.request, look, look.session, verb=verb, said=words, facts=facts, back=_back(form)))


class _SignIn(_Here):
    """Where a token becomes a session."""

    methods = ("GET", "HEAD", "POST")

    async def _made(self, request: Request, session: Session, bearer: access.Bearer | None) -> Response:
        if bearer is not None and request.method != "POST":
            return _sent_to(_back(forms.query_of(request)))
        if request.method != "POST":
            return page("sign_in.html", self._dashboard.context(
                request, None, session, next=_back(forms.query_of(request)), problem=None))
        form = await forms.body_of(request)
        self._dashboard.check_form(request, session, form)
        return self._signed(request, session, form)

    def _signed(self, request: Request, session: Session, form: forms.Given) -> Response:
        dashboard, token = self._dashboard, forms.one(form, "token")
        fresh = dashboard.sessions.begin(access.mark_of(token), _now_ms())
        bearer = dashboard.bearer(fresh)
        address = _address(request)
        if bearer is None:
            self._gateway.note_unknown(request)
            self._gateway.journal.note_action(request.state.id, "refused: unauthorized", verb="sign_in", asked={},
                                              bearer="-", address=address)
            problem = refusal("unauthorized", "token: it is not known, or its time is over", field="token")
            return page("sign_in.html", dashboard.context(request, None, session, next=_back(form),
                                                          problem=problem), 401)
        self._gateway.journal.note_action(request.state.id, "done", verb="sign_in", asked={}, bearer=bearer.name,
                                          address=address)
        return dashboard.keep(request, _sent_to(_back(form)), fresh)


class _SignOut(_Here):
    """The end of a session, as far as the browser goes."""

    methods = ("POST",)

    async def _made(self, request: Request, session: Session, bearer: access.Bearer | None) -> Response:
        self._dashboard.check_form(request, session, await forms.body_of(request))
        return self._dashboard.keep(request, _sent_to(SIGN_IN), self._dashboard.sessions.begin("", _now_ms()))


class _File(Endpoint):
    """What pages load: open to all, and kept by browsers, for other bytes have another address."""

    async def _answer(self, request: Request, places: ExitStack) -> Response:
        found = files().get(request.path_params["name"])
        if found is None or request.method not in ("GET", "HEAD"):
            raise refusal("no_such_route", "there is no such file", field="path")
        return Response(found[0], headers={**PAGE_HEADERS, "content-type": found[1],
                                           "cache-control": f"public, max-age={FILE_AGE_S}, immutable"})


class _Front(Endpoint):
    """The gateway's own address, as people type it."""

    async def _answer(self, request: Request, places: ExitStack) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise refusal("no_such_route", "there is nothing at this path; see /openapi.json", field="path")
        return _sent_to(ROOT)


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _sent_to(path: str) -> Response:
    return RedirectResponse(path, 303, PAGE_HEADERS)


def _next(path: str) -> str:
    return urlencode({"back": path})


def _back(given: forms.Given) -> str:
    """Where to go on: a page of ours, whatever was sent."""
    wanted = forms.one(given, "back")
    is_ours = wanted == ROOT or wanted.startswith((f"{ROOT}/", f"{ROOT}?"))
    return wanted if is_ours and wanted.isascii() and wanted.isprintable() and "\\" not in wanted else ROOT


def _words(verb: Verb) -> list[str]:
    """What a verb does, as the command line's help says it, in paragraphs."""
    text = ((verb.act.__doc__ if verb.act is not None else "") or "").partition("\b")[0]
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()] or [verb.summary]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


