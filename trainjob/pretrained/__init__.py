"""Finds pretrained models and their tokenizers: on the Hugging Face hub, in folders and in buckets."""
