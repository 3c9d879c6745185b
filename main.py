"""`python main.py`: Discord if a token is set, else the sandbox."""

from signoff.cli import main

if __name__ == "__main__":
    main()
