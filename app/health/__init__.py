"""What happens when something goes wrong: uncaught errors, a window that stands still, what a report says."""
