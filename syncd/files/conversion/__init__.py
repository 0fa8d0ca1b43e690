"""The converter reads one file as Markdown in a sandboxed child process that has limits on time and memory."""
