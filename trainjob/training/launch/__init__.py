"""Starting the workers: as processes of this machine, or as actors of a Ray cluster."""
