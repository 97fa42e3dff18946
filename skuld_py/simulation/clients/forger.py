"""A client that acts for claims it was not granted: it knows what readers see, ids and tokens.

Its proofs are made up, those of other claims, or none. Nothing of what it asks may happen (C22).
"""

from __future__ import annotations

from skuld_py.model import messages as m
from skuld_py.model.bounds import PROOF_BYTES
from skuld_py.model.columns import pack, pack_u64
from skuld_py.model.history import FAILED, RELEASED, SNOOZED, token_of
from skuld_py.model.ids import split
from skuld_py.simulation.clients.client import Client, Make
from skuld_py.simulation.options import Options

RECENT = 50
EPOCHS = 3


class Forger:
    """Completes, notes, renews, fails, snoozes and releases what it does not hold."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options

    def begin(self) -> None:
        """Forge."""
        self._client.repeat(self._options.workload.forge_ms, self._forge)

    def _forge(self) -> None:
        random, w = self._client.random, self._client.random.choice((0, 0, self._options.w_min))
        task, token, proof = self._claim()
        tokens, seq = pack_u64([token]), random.randint(0, 1)
        kind, lease_ms = random.choice((RELEASED, SNOOZED, FAILED)), random.choice((0, 500))
        makes: list[Make] = [
            lambda request: m.Complete(request, w, 0, task, tokens, b"", pack([b"forged"]), proof),
            lambda request: m.Append(request, w, task, token, seq, pack([b"forged"]), proofs=proof),
            lambda request: m.Conclude(request, kind, 0, task, tokens, proofs=proof),
            lambda request: m.Renew(request, lease_ms, task, tokens, proof)]
        self._client.ask(random.choice(makes), lambda operation: None)

    def _claim(self) -> tuple[bytes, int, bytes]:
        """A task that was enqueued, is held, or is not there; a token that is the task's own, another's, or was
        never granted."""
        random, holds = self._client.random, self._client.history.holds[-RECENT:]
        sent = [batch.ids for operation in self._client.history.operations[-RECENT:]
                if isinstance(operation.message, m.Enqueue) for batch in operation.message.batches]
        tasks = [random.randbytes(20)] + [hold.task for hold in holds]
        if sent:
            tasks += split(random.choice(sent))
        tokens = [token_of(random.randint(1, EPOCHS), random.randint(1, 9))]
        proofs = [b"", random.randbytes(PROOF_BYTES)]
        at = random.randrange(len(holds)) if holds else 0
        task = random.choice(tasks)
        if holds and random.random() < 0.5:  # a claim that stands, as any reader sees it
            return holds[at].task, holds[at].token, random.choice(proofs)
        tokens += [hold.token for hold in holds[at : at + 1]]
        proofs += [hold.proof for hold in holds[at : at + 1] if hold.task != task]
        return task, random.choice(tokens), random.choice(proofs)
