-- The names of the agents inside tools that made the call, as JSON.
ALTER TABLE requests ADD COLUMN path TEXT NOT NULL DEFAULT '[]';

-- Runs of agents inside a tool call. Their messages are in `messages` and their calls in `calls`, under `conversation`.
CREATE TABLE inner_runs (
    conversation        TEXT NOT NULL PRIMARY KEY,
    parent_conversation TEXT NOT NULL,
    parent_position     BIGINT NOT NULL,
    parent_call_id      TEXT NOT NULL,
    turn                TEXT NOT NULL,
    agent               TEXT NOT NULL,
    -- How many responses the model gave in this run.
    requests            BIGINT NOT NULL,
    ended               BOOLEAN NOT NULL
);
CREATE INDEX inner_runs_by_call ON inner_runs (parent_conversation, parent_position, parent_call_id);
CREATE INDEX inner_runs_by_turn ON inner_runs (turn);
