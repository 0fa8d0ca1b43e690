"""The daemon package wires the opened parts of Memex together, schedules the background jobs and reports health and metrics."""
