"""Workers: processes that claim tasks, run them (as Spark jobs or plain functions) and report back."""
