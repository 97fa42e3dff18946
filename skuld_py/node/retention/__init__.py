"""Deleting tasks that ended long ago: slice by slice, on all replicas, after an archive has them if there is
one."""
