"""An operator's wish that no partition obeys is a failure to a script, and says why."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from skuld_py.cli.acting import leave_if_refused
from skuld_py.cli.failures import REFUSED
from skuld_py.verbs import documents as d

WHY = d.RefusedPartition(partition=3, reason="it has no vote")


@pytest.mark.parametrize(("changed", "refused", "status"), [
    (0, [WHY], REFUSED), (1, [WHY], 0), (0, [], 0), (2, [], 0)])
def test_the_exit_status_is_that_of_a_refusal_only_where_nothing_was_changed(
        changed: int, refused: list[d.RefusedPartition], status: int) -> None:
    @click.command
    def run() -> None:
        leave_if_refused(d.Overseen(changed=changed, refused=refused, frozen=[]))

    assert CliRunner().invoke(run, []).exit_code == status
