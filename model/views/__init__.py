"""What is looked at: pure functions of a run and a selection, one file a subject, without a window or a process."""
