-- Prompts that run by themselves. A removed schedule keeps its row, so that no number is used twice.
CREATE TABLE schedules (
    server   TEXT NOT NULL,
    number   BIGINT NOT NULL,
    channel  TEXT NOT NULL,
    cron     TEXT NOT NULL,
    prompt   TEXT NOT NULL,
    mode     TEXT NOT NULL,
    made_by  TEXT NOT NULL,
    created  DOUBLE PRECISION NOT NULL,
    -- When it runs next.
    due      DOUBLE PRECISION NOT NULL,
    -- The due time of the run that is being started; NULL if there is none. It is set before anything is posted.
    claimed  DOUBLE PRECISION,
    -- The message in the channel that begins the claimed run; empty before it is posted.
    message  TEXT NOT NULL DEFAULT '',
    -- Why it does not run; empty if it does.
    paused   TEXT NOT NULL DEFAULT '',
    last_run DOUBLE PRECISION,
    removed  DOUBLE PRECISION,
    PRIMARY KEY (server, number)
);
CREATE INDEX schedules_by_due ON schedules (due) WHERE removed IS NULL AND paused = '';
CREATE INDEX schedules_by_claim ON schedules (claimed) WHERE claimed IS NOT NULL;

-- Turns that a schedule started, with its mode. The row is written before the turn.
CREATE TABLE scheduled_turns (
    turn     TEXT NOT NULL PRIMARY KEY,
    schedule BIGINT NOT NULL,
    mode     TEXT NOT NULL
);
