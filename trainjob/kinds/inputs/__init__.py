"""How the rows of a kind of model are read and turned into arrays."""
