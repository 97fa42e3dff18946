"""How ended tasks go: in slices, from all replicas, through an archive if there is one."""
