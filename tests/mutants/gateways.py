"""Mutants of the gateway: who may ask it for what, how much of it one caller may have, and where it listens."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

GATES = "tests/gateway/test_gates.py::"
JSON = "tests/gateway/test_strict_json.py::"
PLACES = "tests/gateway/test_places.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "A4", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(PLACES + "test_one_caller_has_half_of_the_places_and_another_one_finds_room", "places-for-one-caller",
             "one caller takes all places of a gateway", "Places.taken",
             "        if self._taken_by[caller] >= self._share:\n", "        if False:\n"),
    _seen_by(PLACES + "test_one_caller_has_half_of_the_places_and_another_one_finds_room", "gateway-places-without-end",
             "a gateway takes on any number of requests", "Places.taken",
             "        if self._taken >= self._most:\n", "        if False:\n"),
    _seen_by(PLACES + "test_a_place_is_given_back_whatever_ends_its_request", "places-kept",
             "a caller's place stays taken when its request has ended", "Places.taken",
             "            self._taken_by[caller] -= 1\n", "            pass\n"),
    _seen_by(GATES + "test_one_caller_cannot_take_all_places_and_is_told_when_to_come_again",
             "health-takes-a-place", "a gateway with much to do says that it is not well", "Gateway.run",
             "        if verb.scope is not None:\n", "        if True:\n"),
    _seen_by(GATES + "test_one_caller_cannot_take_all_places_and_is_told_when_to_come_again", "callers-by-address",
             "all tokens that come from one address are one caller", "_caller",
             "    if bearer is not access.ANYBODY:\n", "    if False:\n"),
    _seen_by(GATES + "test_what_waits_has_places_of_its_own_and_one_caller_half_of_them", "stays-among-short-ones",
             "followers of logs take the places of short requests", "Gateway.run",
             "        if _stays(asked):\n", "        if False:\n"),
    _seen_by(GATES + "test_what_waits_has_places_of_its_own_and_one_caller_half_of_them", "stays-in-two-places",
             "what waits keeps its place among short requests", "Gateway.run",
             "            places.close()\n", "            pass\n"),
    _seen_by(GATES + "test_a_caller_without_a_token_is_its_address", "document-without-a-place",
             "any number of the OpenAPI document are sent at once", "_Document._answer",
             "        self._gateway.enter(request, access.ANYBODY, places)\n", ""),
    _seen_by(GATES + "test_two_tokens_are_not_one", "two-tokens",
             "of two tokens one is taken", "Gateway.check_head",
             '        if len(request.headers.getlist("authorization")) > 1:\n', "        if False:\n"),
    _seen_by(JSON + "test_no_value_is_made_of_a_text_that_has_too_many", "values-without-end",
             "a body of millions of values is read while all others wait", "strict_json.parse",
             "    if _has_more_values(raw, values_max):\n", "    if False:\n"),
    _seen_by(JSON + "test_what_stands_in_a_string_is_no_value", "values-in-strings",
             "commas in a payload count as values", "_has_more_values",
             'between = b"".join(plain.split(b\'"\')[::2])', "between = plain"),
    _seen_by(JSON + "test_what_stands_in_a_string_is_no_value", "values-behind-escapes",
             "a string is taken to end at an escaped quote", "_has_more_values",
             ' if b"\\\\" in raw else raw', ' if b"" not in raw else raw'),
    _seen_by(JSON + "test_the_search_for_a_key_given_twice_looks_at_each_key_once", "keys-sought-in-all",
             "each key of a body is compared with each other one", "strict_json._object",
             "next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)",
             "next(key for at, (key, _) in enumerate(pairs) if key in [other for other, _ in pairs[:at]])"),
    _seen_by("tests/gateway/test_large_bodies.py::test_a_large_body_is_read_aside", "bodies-read-in-the-loop",
             "nobody is served while a large body is read", "Gateway.read",
             "understood() if len(raw) <= self.limits.aside_bytes else await asyncio.to_thread(understood)",
             "understood()"),
)
