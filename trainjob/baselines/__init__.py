"""What the trained model is compared with: classifiers that cost little, on the same rows."""
