"""Mutants of claims that wait: whom work wakes, what becomes of word that was not used, and how many may wait."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant, script

TESTS = "tests/node/test_parking.py::"
WOKEN = TESTS + "test_as_many_are_woken_as_tasks_came_and_those_that_wait_longest"
PLACES = TESTS + "test_so_many_claims_wait_at_a_node_and_so_many_of_a_client"
WAITS = TESTS + "test_so_many_ends_and_logs_are_waited_for_at_a_node_and_so_many_by_a_client"
KEPT = TESTS + "test_who_holds_claims_renews_and_ends_them_where_others_are_refused"
BEHIND = "tests/node/test_behind.py::test_a_node_that_is_behind_refuses_what_is_new_and_later_what_holders_ask"
ONLOOKERS = "tests/node/test_behind.py::test_a_node_however_far_behind_says_who_and_how_it_is"
PAUSES = "tests/node/test_behind.py::test_a_silent_peer_is_asked_again_after_ever_longer_pauses"
BEYOND = ("tests/node/test_granting.py::"
          "test_a_renewal_beyond_the_horizon_waits_once_however_often_it_is_asked_and_is_forgotten")
HONEST = TESTS + "test_a_claim_is_not_told_that_nothing_waits_where_nobody_can_say"


def broken(name: str, rule: str, place: str, old: str, new: str, invariant: str, *tests: str) -> Mutant:
    """A mutant that directed tests see: workers that ask again hide it from the simulator."""
    return mutant(name, rule, place, old, new, invariant, *tests, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    mutant("leaderless-is-empty", "a claim is told that nothing waits, though some partitions have no leader",
           "ClaimOperation._why_nothing", '"" if self.view.is_led_throughout else "leaderless"', '""', "A2",
           "tests/node/test_parking.py::"
           "test_a_claim_that_gets_nothing_is_told_of_partitions_that_nobody_leads", seeds=0),
    mutant("paused-is-empty", "a claim is told that nothing waits, though the queue is paused",
           "ClaimOperation._why_nothing", '            return "paused"\n', '            return ""\n', "A2",
           "tests/node/test_parking.py::test_of_a_paused_queue_nothing_can_be_claimed_whoever_leads", seeds=0),
    mutant("limited-is-empty", "a claim is told that nothing waits, though the limits of the queue are reached",
           "GrantOperation.on_lent", '            self._withheld = "limited"\n', "            pass\n", "A2",
           script("no more than the limit are held wherever they are asked for"), seeds=0),
    mutant("grants-noted-with-claims", "that grants are possible is noted only while a claim waits",
           "ParkedClaims.look",
           "        self._could_grant = may_grant\n",
           "        self._could_grant = may_grant if self._claims else could_grant\n", "A3",
           "tests/node/test_parking.py::"
           "test_a_claim_that_comes_in_the_turn_in_which_grants_are_possible_again_is_served", seeds=0),
    broken("all-are-woken", "one task wakes all claims of its queue", "ParkedClaims.look",
           "            self._wake_all(now_ms, filled)\n",
           "            self._wake_all(now_ms, dict.fromkeys(filled, 1_000))\n", "O3", WOKEN),
    broken("youngest-is-woken", "who waits longest is woken last", "ParkedClaims._wake",
           "        claims = self._claims[queue].values()\n",
           "        claims = list(reversed(self._claims[queue].values()))\n", "O3", WOKEN),
    broken("hints-wake-all", "all claims follow a hint at once", "ParkedClaims._follow_hint",
           "max(0, party.width - len(party.claims))", "10_000", "O3",
           TESTS + "test_a_hint_is_followed_by_one_first_and_by_more_where_there_is_more"),
    broken("member-brings-no-hints", "what a node said before it was a member is not followed",
           "ParkedClaims.note_members", "        self._restless.update(dict.fromkeys(self._claims))\n",
           "        pass\n", "O3",
           TESTS + "test_a_hint_of_a_node_that_is_no_member_is_followed_once_it_is_one"),
    broken("hints-meanwhile-are-lost", "who comes to wait follows no hint that came while it was tried",
           "ParkedClaims.take_place", "        self._restless[claim.wish.queue] = None\n", "", "O3",
           TESTS + "test_a_hint_that_came_while_a_claim_was_tried_is_followed_when_it_has_got_nothing"),
    broken("changed-hints-unheard", "nobody hears that another node has work", "Router._note_change",
           "        if node != self._me:\n", "        if False:\n", "O3",
           TESTS + "test_a_hint_is_followed_by_one_first_and_by_more_where_there_is_more"),
    broken("unused-word-is-lost", "a claim that ends takes along word of work that it did not need",
           "ParkedClaims._remove",
           "        elif claim.has_news or claim.server == self._view.me.name:\n",
           "        elif claim.server == self._view.me.name:\n", "O3",
           TESTS + "test_word_that_was_not_used_is_passed_on"),
    broken("what-was-left-stays-left", "who was served does not wake the next while something is left",
           "ParkedClaims._remove",
           "        elif claim.has_news or claim.server == self._view.me.name:\n",
           "        elif claim.has_news:\n", "O3", TESTS + "test_a_claim_woken_in_vain_waits_where_it_was"),
    broken("tried-claims-hear-nothing", "word of work does not reach a claim that is just being tried",
           "ParkedClaims._wake",
           "        for claim in [*parked, *tried]:\n", "        for claim in parked:\n", "O3",
           TESTS + "test_word_that_was_not_used_is_passed_on",
           "tests/node/test_claiming.py::test_a_claim_is_woken_whatever_arrives_between_its_questions"),
    broken("grants-again-unheard", "nobody is woken when a node may grant again", "ParkedClaims.look",
           "has_risen or (may_grant and not could_grant)", "has_risen", "O3",
           TESTS + "test_who_waits_is_served_when_grants_are_possible_again"),
    broken("new-leader-wakes-nobody", "nobody is woken when a node leads anew", "ParkedClaims.look",
           "has_risen or (may_grant and not could_grant)", "may_grant and not could_grant", "O3",
           TESTS + "test_who_waits_is_served_when_its_node_leads_anew"),
    broken("given-up-and-forgotten", "nobody is woken for what a grant gave up before its horizon moved",
           "Horizons.wake", "            self._note_leftover(queue)\n", "            pass\n",
           "O3", TESTS + "test_who_waits_is_served_when_the_horizon_has_moved_though_the_grant_gave_up"),
    broken("places-without-end", "any number of claims waits at a node", "Places.take",
           "len(self._whose) >= most or ", "", "A3", PLACES),
    broken("places-for-one", "one client's claims take all places", "Places.take",
           " or mine >= most_each", "", "A3", PLACES),
    broken("places-never-free", "a claim that has ended keeps its place", "Places.take",
           "            operation.at_end.append(partial(self._leave, number))\n", "", "A3", PLACES),
    broken("waits-without-end", "one connection takes all requests of a node by waiting for ends",
           "ReadRequests._with_place",
           "        if not self._waits.take(", "        if 0 > self._waits.take(", "A3", WAITS),
    broken("waits-never-free", "a wait that has ended keeps its place", "Places.take",
           "            operation.at_end.append(partial(self._leave, number))\n", "", "A3", WAITS),
    broken("nothing-kept-for-holders", "who holds claims is refused where others ask much",
           "ClientDoor._check_load",
           "0 if is_of_holder else limits.holders_requests", "0", "A3", KEPT),
    broken("holders-refused-as-all", "who holds claims is refused as early as others", "ClientDoor._check_load",
           "0 if is_of_holder else limits.holders_requests", "limits.holders_requests", "A3", KEPT),
    broken("never-behind", "a node that is far behind takes on whatever is asked", "Node._take",
           "now_ms - self.operations.timers.due_ms)", "0)", "A3", BEHIND),
    broken("holders-as-early-when-behind", "a node that is behind refuses holders as early as others",
           "ClientDoor._check_load", "(HOLDERS_PATIENCE if is_of_holder else 1)", "1", "A3", BEHIND),
    broken("onlookers-refused-when-behind", "a node that is behind does not say how it is", "OF_ONLOOKERS",
           "OF_ONLOOKERS = (m.Greet, m.Describe)", "OF_ONLOOKERS = ()", "A3", ONLOOKERS),
    broken("silent-peers-get-a-flood", "a peer that is behind is asked again as often as one that lost a message",
           "Operation._wake_later", "        self._pause_ms *= 2\n", "", "A3", PAUSES),
    broken("horizon-waits-twice", "a renewal that is asked again while ZooKeeper is away waits once more",
           "lead_renewal", "    if horizons.awaits(origin):\n        return\n", "", "A3", BEYOND),
    broken("horizon-waits-for-ever", "a renewal that gave up waits on in memory until ZooKeeper is back",
           "Horizons.add",
           "        waiter.at_end.append(partial(self._drop, waiter))\n", "", "A3", BEYOND),
    broken("places-before-tries", "what could be served is refused where many wait", "ClaimOperation.begin",
           "self.view.route(self.wish.queue)",
           "self.view.route(self.wish.queue) if self.host.take_place(self) else ()",
           "A3", TESTS + "test_what_can_be_served_needs_no_place"),
    broken("nothing-where-nobody-can-say", "a claim without any leader is told that nothing waits",
           "ClaimOperation._give_nothing",
           "        elif self.view.has_leaders or ", "        elif True or ", "A4", HONEST),
)
