"""All verbs, in the order of the command line's help. One more is a function and a row in one of these modules,
and a method of the client's that it calls.
"""

from __future__ import annotations

from skuld_py.verbs import (
         bulk,
         enqueueing,
         histories,
         holding,
         members,
         operators,
         queues,
         tasks,
         workers,
         workflows,
)

VERBS = (*enqueueing.VERBS, *holding.VERBS, *tasks.VERBS, *bulk.VERBS, *queues.VERBS, *workers.VERBS,
         *workflows.VERBS, *operators.VERBS, *members.VERBS, *histories.VERBS)
GROUPS = {"bulk": "Retry, cancel, purge, move or release all tasks of which something is so; see first how many.",
          "schedule": "Have tasks enqueued periodically, see which are, and end it."}
"""The words of help for the first word of commands of two words."""
