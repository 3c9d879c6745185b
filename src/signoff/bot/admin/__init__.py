"""`/signoff`: the commands for people with Manage Server. This package checks who they are and words the responses;
`turns.administration` does the work."""
