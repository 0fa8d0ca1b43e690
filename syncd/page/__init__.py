"""The page shows the owner's vault in a browser, as a client of the daemon's control socket like the command line."""
