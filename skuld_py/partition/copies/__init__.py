"""Having copies agree: comparing and mending them, collecting tasks that ended long ago, scrubbing what is
damaged."""
