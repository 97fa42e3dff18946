"""Nodes do what the texts say, message by message; and a text that says otherwise is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.script import Script, all_scripts, read
from node.stage import BadScript

SCRIPTS = all_scripts()
TEXT = """# One node, for all scripts that have no cluster of their own.
cluster nodes=1 replicas=1

== a task is claimed
enqueue a
    acked by 1
# who comes first
claim
    claimed a

== nothing is claimed
claim
"""


@pytest.fixture
def is_rewriting(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.title for script in SCRIPTS])
def test_it_is_as_the_text_says(script: Script, is_rewriting: bool) -> None:
    if is_rewriting:
        script.rewrite()
    else:
        difference = script.difference()
        assert not difference, f"with --rewrite this becomes what is expected:\n{difference}"


def test_titles_are_names_of_tests_so_none_is_there_twice() -> None:
    assert len({script.title for script in SCRIPTS}) == len(SCRIPTS)


# -- the texts themselves ------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "some.txt"
    made.write_text(TEXT)
    return made


@pytest.mark.parametrize(("said", "otherwise"), [
    ("    claimed a\n", "    claimed b\n"), ("    claimed a\n", ""),
    ("    acked by 1\n", "    acked by 1\n    b\n")])
def test_what_is_otherwise_than_a_text_says_is_shown_and_rewritten_when_that_is_wanted(
        path: Path, said: str, otherwise: str) -> None:
    test_it_is_as_the_text_says(read(path)[0], False)
    path.write_text(TEXT.replace(said, otherwise))

    with pytest.raises(AssertionError, match=r"some\.txt, from line 5"):
        test_it_is_as_the_text_says(read(path)[0], False)
    changes = {line for line in read(path)[0].difference().splitlines()[2:] if line[0] in "+-"}
    for script in read(path):
        test_it_is_as_the_text_says(script, True)

    was, now = {*said.splitlines()}, {*otherwise.splitlines()}
    assert changes == {f"-{line}" for line in now - was} | {f"+{line}" for line in was - now}
    assert path.read_text() == TEXT + "    claimed nothing\n"


@pytest.mark.parametrize(("line", "problem"), [
    ("enqeue a", "'enqeue' is no directive; there are enqueue, claim"),
    ("claim 1 queu=q", "'queu' is no option; there are by, at"),
    ("claim 1 page=3", "claim: got an unexpected keyword argument 'page'"),
    ("claim one", "'one' is no number"),
    ("claim 1 lease=20", "'20' is no time; a time is a number and one of ms s m h"),
    ("enqueue a w=x", "'x' is no number"),
    ("enqueue a policy=no", "'no' is no policy; there are wait, fail, ignore"),
    ("complete b", "there is no task b; enqueue it, or name it"),
    ("claim at=n7", "'n7' is no node; there are n0, leader, follower"),
    ("resign 4", "nobody leads partition 4"),
    ("lose Words", "'Words' is no message; there are Greet"),
    ("session lots", "'lots' is no state of a session; there are connected, suspended, lost"),
    ("restore n0", "'n0' is no copied disk; there are nothing"),
    ("given claim; renew a; complete a b", "there is no task b"),
    ("given enqueue a; enqueue a queue=p by=w", "enqueue a queue=p by=w: w: failed"),
    ("cluster", "a second cluster")])
def test_what_is_no_directive_is_told_with_its_line(path: Path, line: str, problem: str) -> None:
    path.write_text(TEXT.replace("# who comes first", line))

    with pytest.raises(BadScript) as told:
        read(path)[0].played()

    assert str(told.value).startswith(f"some.txt:7: {problem}")


def test_a_script_without_a_cluster_a_text_without_a_title_and_a_title_said_twice_are_told(path: Path) -> None:
    for text, problem in (("== a\nclaim\n", "some.txt:2: a script begins with a cluster"),
                          ("claim\n", "some.txt: has no script; one begins with a line '== TITLE'"),
                          ("== a\n== a\n", "some.txt:2: a second script is called 'a'"),
                          ("== a\n    claimed b\n", "some.txt:2: nothing is done that this could come of")):
        path.write_text(text)
        with pytest.raises(BadScript) as told:
            [script.played() for script in read(path)]
        assert str(told.value) == problem
