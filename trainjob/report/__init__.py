"""A run's folder → one HTML file (`render.render`), and the card of its model (`card.card`)."""
