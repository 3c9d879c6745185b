"""The commands of the command line, one file each. They join the parts; nothing else may import them."""
