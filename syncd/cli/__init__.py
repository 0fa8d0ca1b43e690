"""The command `memex` registers all commands, maps errors to exit codes and generates the manual page."""
