"""Copies that agree: comparing and mending them, collecting what ended long ago, scrubbing what is damaged."""
