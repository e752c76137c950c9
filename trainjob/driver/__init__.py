"""One run, as the process sees it that the user starts: prepares the data, has workers train, retries, summarizes."""
