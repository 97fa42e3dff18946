"""How ended tasks are deleted: in slices, from all replicas, through an archive if there is one."""
