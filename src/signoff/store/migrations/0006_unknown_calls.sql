-- A call whose connection was lost has ended, and nobody knows whether it ran. Its state stays 'failed' for older programs.
ALTER TABLE calls ADD COLUMN unknown BOOLEAN NOT NULL DEFAULT FALSE;
