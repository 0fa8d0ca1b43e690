"""Owner operations carry out what the command line asks for; no HTTP route leads to them."""
