"""Who works on a task: claims are granted, renewed, ended, and lapse."""
