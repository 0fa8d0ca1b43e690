"""The command framework gives every command its shared options, its connection to the daemon, its help and shell completion."""
