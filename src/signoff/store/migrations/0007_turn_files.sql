-- What an asker sends along with a mention.

-- The message that a mention replies to, as JSON; empty if it replies to none.
ALTER TABLE turns ADD COLUMN quoted TEXT NOT NULL DEFAULT '';

-- The files that came with a mention. Retention removes them like the texts of the record.
CREATE TABLE turn_files (
    turn       TEXT NOT NULL,
    position   BIGINT NOT NULL,
    name       TEXT NOT NULL,
    size       BIGINT NOT NULL,
    media_type TEXT NOT NULL,
    problem    TEXT NOT NULL,
    data       BYTEA NOT NULL,
    at         DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (turn, position)
);
CREATE INDEX turn_files_by_age ON turn_files (at);
