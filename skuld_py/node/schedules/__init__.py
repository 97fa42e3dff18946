"""Schedules: the leader of a schedule's home partition enqueues its tasks when the calendar says so."""
