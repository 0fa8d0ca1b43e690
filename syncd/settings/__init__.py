"""The settings loader turns flags, environment variables and the configuration file into typed values; encoders and promotion rules define their own settings classes."""
