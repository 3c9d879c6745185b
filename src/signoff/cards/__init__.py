"""Turn requests into cards, which consist of trusted and quoted parts."""
