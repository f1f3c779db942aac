"""Every performance figure that the project states, and the command that shows it."""
