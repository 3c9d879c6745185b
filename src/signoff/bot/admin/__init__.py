"""`/signoff`: what people with Manage Server order and ask. It checks who they are and words the answers; the orders
themselves are carried out behind `turns.administration`."""
