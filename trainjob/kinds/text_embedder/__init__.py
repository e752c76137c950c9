"""A transformer that gives each text a vector, such that texts that belong together are close."""
