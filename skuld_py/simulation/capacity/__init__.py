"""What more nodes bring: tasks a second of 3 to 100 nodes with the real machines, in virtual time, by a model.

Each node is the node machine itself over a store in memory; what its messages, their bytes and its commits cost
its processor and its disk is said by ``costs``. ``world`` lets time pass, ``clients`` keep all nodes busy,
``runs`` count and judge. Nodes share no machine here, so what is linear or not is the protocol, and what each
owes to all others (gossip, clocks) shows as messages between idle nodes.
"""
