"""Mutants of schedules: one task for a tick, which ticks, and who sees to them."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

SCHEDULING, SCHEDULE = "node/scheduling.py", "model/schedule.py"
NODES = "tests/node/test_scheduling.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("tick-with-nonce", "a tick's task is named by the node that enqueues it, too", SCHEDULING,
           "plan.schedule.task(name, tick_ms)", 'plan.schedule.task(f"{name}-{self._node.me.name}", tick_ms)',
           "C20", NODES + "test_every_tick_from_the_definition_on_becomes_a_task_in_time"),
    mutant("tick-of-now", "a task is made for the moment at which it is enqueued", SCHEDULING,
           "            plan.owed[tick_ms] = False\n        for",
           "            plan.owed[now_ms] = False\n        for", "C20",
           NODES + "test_of_missed_ticks_the_newest_is_made_up_for_and_as_many_more_as_wanted"),
    mutant("ticks-from-the-beginning", "a definition makes ticks from before it was made", SCHEDULING,
           "Plan(schedule, schedule.since_ms)", "Plan(schedule, 0)", "C20",
           NODES + "test_a_changed_definition_holds_from_its_making_on_and_makes_no_old_tick_anew"),
    mutant("tick-written-once", "a tick that no majority has acknowledged is not written again", SCHEDULING,
           "                plan.owed[tick_ms] = False\n        plan",
           "                del plan.owed[tick_ms]\n        plan", "C20",
           NODES + "test_a_tick_that_no_majority_has_is_written_again"),
    mutant("schedules-die-with-their-leader", "who comes to lead takes no schedules over", SCHEDULING,
           "                        if home_of(name, partitions) in led and name not in self._plans]\n",
           "                        if False]\n", "C20",
           NODES + "test_the_next_leader_goes_on_and_no_tick_is_there_twice"),
    mutant("schedules-without-a-home", "every node enqueues every tick", SCHEDULING,
           "        if schedule is None or home_of(name, self._node.parameters.partitions) not in self._led:\n",
           "        if schedule is None:\n", "C20",
           NODES + "test_one_node_enqueues_though_all_know_the_schedule", seeds=0),
    mutant("all-missed-ticks", "every tick that was missed is made up for", SCHEDULING,
           "        wanted = 1 + plan.schedule.catch_up\n", "        wanted = 1_000\n", "C20",
           NODES + "test_of_missed_ticks_the_newest_is_made_up_for_and_as_many_more_as_wanted", seeds=0),
    mutant("removed-schedule-ticks-on", "a schedule that was removed goes on", SCHEDULING,
           "            self._plans.pop(name, None)\n", "            pass\n", "C20",
           NODES + "test_a_removed_schedule_ticks_no_more", seeds=0),
    mutant("spent-schedules-keep-awake", "a node whose schedules are gone is kept awake by what is left of them",
           SCHEDULING, "        if not (settings.schedules or self._fresh or self._dues):\n",
           "        if not (settings.schedules or self._fresh):\n", "C20",
           NODES + "test_a_removed_schedule_ticks_no_more", seeds=0),
    mutant("all-at-midnight", "all schedules that are due are seen to in one turn", SCHEDULING,
           "        for _ in range(PLANS_AT_ONCE):\n", "        while True:\n", "C20",
           NODES + "test_many_schedules_due_at_once_are_all_served_a_part_at_a_time", seeds=0),
    mutant("newest-tick-overlooked", "the search for the newest tick stops one short", SCHEDULE,
           "    while (tick := look(low)) is not None:\n",
           "    while False and (tick := look(low)) is not None:\n", "C20",
           "tests/model/test_schedule.py", seeds=0),
)
