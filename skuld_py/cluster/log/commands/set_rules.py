"""``set-rules``: from here on the log is played by other rules.

Rules are versioned in the log, not by release: during an upgrade all members play the old rules, even those that
know newer ones; once all members know them, an operator writes this. A member that cannot play the new rules must
stop (``play``), for going on by the old ones would part it from all others without a sign.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable
from skuld_py.cluster.log.replica import Replica


@attrs.frozen
class SetRules(Command):
    """``rules`` only rise."""

    kind = "set-rules"

    rules: int

    def apply(self, replica: Replica, position: int) -> Replica:
        """Play by them from the next entry on."""
        if self.rules < replica.rules:
            raise Inapplicable(f"rules {replica.rules} are in force; rules only rise, not to {self.rules}")
        return replica if self.rules == replica.rules else attrs.evolve(replica, rules=self.rules)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The rules in force."""
        return {} if old is new else {"rules": str(self.rules)}
