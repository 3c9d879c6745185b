"""From a request to a card of trusted and quoted parts."""
