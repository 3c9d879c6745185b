"""What is measured, not tested: `make bench` prints the tables that docs/performance.md quotes."""
