"""Classification by a large language model behind an OpenAI-compatible endpoint, with or without examples."""
