"""The thin shells around the node machine: everything that touches a disk, a socket, a thread or a clock.

Nothing here decides anything. An adapter translates bytes, callbacks and foreign exceptions into the
events of ``model.events`` and effects back into calls, so that what the simulator proves of the
machine holds for the process. One thread steps the machine and owns store and transport; the
registry's threads only ever put events into the loop's inbox.
"""
