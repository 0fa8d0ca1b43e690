"""The settings loader turns flags, environment variables and the configuration file into typed values; every settings class of the daemon is defined here."""
