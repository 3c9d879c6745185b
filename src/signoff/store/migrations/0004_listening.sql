-- For mentions that were sent while the bot was offline.

-- When the asker wrote, if the bot found the mention later; else NULL.
ALTER TABLE turns ADD COLUMN asked DOUBLE PRECISION;

-- Mentions that were heard and did not become a turn, for example because the asker was refused. They must not be
-- answered when the bot is back. The id is made like a turn's: CHANNEL-MESSAGE.
CREATE TABLE heard (
    mention TEXT NOT NULL PRIMARY KEY,
    at      DOUBLE PRECISION NOT NULL
);
CREATE INDEX heard_by_age ON heard (at);

-- One row: until when the bot certainly listened.
CREATE TABLE listening (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    until    DOUBLE PRECISION NOT NULL
);
