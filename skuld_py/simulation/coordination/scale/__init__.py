"""The coordination plane at 100, 1,000 and 10,000 members, simulated: what each of the ideas for scale saves.

Members that are at one position of the log share the one replica there, so a cluster costs its entries, not its
members. Commands, reactions and watches are the real ones; members are light, ZooKeeper is two queues (``costs``).
"""
