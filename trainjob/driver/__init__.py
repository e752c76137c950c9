"""One run, in the process that the user starts: prepares the data, starts the workers, retries, summarizes."""
