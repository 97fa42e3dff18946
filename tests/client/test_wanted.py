"""What a pattern is like, and what of a task it is held against."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import skuld_py
from skuld_py.client.wanted import Wanted, is_like
from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.columns import Column
from skuld_py.testing import MemoryClient


@example("ab*b", "aB")
@given(st.text("ab*", max_size=7), st.text("aB", max_size=9))
def test_a_star_is_any_text_and_letters_are_alike(pattern: str, text: str) -> None:
    assert is_like(pattern, text) == fnmatchcase(text.lower(), pattern)


@pytest.mark.parametrize(("pattern", "text"), [
    ("a?b", "a?b"), ("[Errno 5]*", "[errno 5] no"), ("*\n*", "a\nb"), ("*", ""), ("STRASSE", "strasse")
])
def test_no_other_sign_means_anything(pattern: str, text: str) -> None:
    assert is_like(pattern, text)
    assert not is_like("a?b", "acb") and not is_like("[ab]", "a")


def test_a_pattern_of_many_stars_is_no_work() -> None:
    assert not is_like("*a" * 250, "a" * 249 + "b" * 1_000_000)
    assert is_like("*a" * 250 + "*", "a" * 250 + "b" * 1_000_000)


def test_a_payload_that_is_no_call_has_no_arguments() -> None:
    client = MemoryClient()
    payloads = [b"", b"7", b"\x94\x01\xa1x", skuld_py.call("x", 7)[:-1], skuld_py.call("x", b"7", b"\xff")]
    tasks = client.get_many(client.enqueue_many("q", payloads))

    assert [task.payload for task in tasks if Wanted(argument="*").suits(task)] == payloads[-1:]
    assert Wanted(argument="7").suits(tasks[-1]) and Wanted(argument="\ufffd").suits(tasks[-1])
    assert all(Wanted().suits(task) and Wanted().has_error(b"") for task in tasks)
    assert not Wanted(error="*").has_error(b"") and Wanted(error="*").has_error(b"\xff")


@pytest.mark.parametrize("field", ["argument", "header", "error"])
@pytest.mark.parametrize("pattern", ["", "x" * 501, 7, b"x"])
def test_what_is_no_pattern_is_refused_by_its_field(field: str, pattern: Any) -> None:
    with pytest.raises(Refused) as refused:
        Wanted(**{field: pattern}).check()
    assert (refused.value.code, refused.value.facts["field"]) == (f"bad_{field}", field)


def test_of_a_node_that_has_no_place_for_errors_the_tasks_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    client = MemoryClient()
    failed, _ = client.enqueue_many("q", [b"a", b"b"])
    client.fail(client.claim("q")[0], "no such row")
    perform, pages = client._perform, list[m.Message]()

    def older(step: Any) -> Any:
        answered = perform(step)
        if isinstance(answered.message, m.Listed):
            pages.append(answered.message)
            return attrs.evolve(answered, message=attrs.evolve(answered.message, errors=Column()))
        return answered
    monkeypatch.setattr(client, "_perform", older)

    assert [task.id for task in client.list("q", error="*row*")] == [failed]
    assert len(pages) == 1
