-- What each model response used. A row is written as soon as the response is there, so that no crash forgets it.
CREATE TABLE usage (
    turn          TEXT NOT NULL,
    server        TEXT NOT NULL,
    conversation  TEXT NOT NULL,
    person        TEXT NOT NULL,
    at            DOUBLE PRECISION NOT NULL,
    model         TEXT NOT NULL,
    input_tokens  BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    -- In US dollars. NULL: the price of the model is not known, or its provider did not say what was used.
    cost          DOUBLE PRECISION
);
CREATE INDEX usage_by_conversation ON usage (server, conversation);
CREATE INDEX usage_by_person ON usage (server, person, at);
CREATE INDEX usage_by_day ON usage (server, at);

-- Limits that people raised by accepting an overage. The highest one counts: two cards for one limit add nothing twice.
CREATE TABLE raised_limits (
    request   TEXT NOT NULL PRIMARY KEY,
    server    TEXT NOT NULL,
    budget    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    unit      TEXT NOT NULL,
    day       TEXT NOT NULL,
    raised_to DOUBLE PRECISION NOT NULL,
    at        DOUBLE PRECISION NOT NULL
);
CREATE INDEX raised_limits_by_subject ON raised_limits (server, budget, subject, unit, day);
