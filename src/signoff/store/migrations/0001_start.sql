-- The tables, in types and words that SQLite and PostgreSQL both understand:
-- BYTEA is a plain blob and DOUBLE PRECISION an eight-byte float in either.
-- `seq` is the order of arrival, since clocks may stand still.

CREATE TABLE turns (
    id           TEXT NOT NULL PRIMARY KEY,
    seq          BIGINT NOT NULL UNIQUE,
    server       TEXT NOT NULL,
    channel      TEXT NOT NULL,
    conversation TEXT NOT NULL,
    message      TEXT NOT NULL,
    asker        TEXT NOT NULL,
    asker_seen   TEXT NOT NULL,
    text         TEXT NOT NULL,
    created      DOUBLE PRECISION NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'done', 'failed', 'stopped')),
    prompted     BOOLEAN NOT NULL,
    rounds       BIGINT NOT NULL,
    batch        TEXT,
    reply        TEXT,
    reply_posted BOOLEAN NOT NULL
);
CREATE INDEX turns_by_state ON turns (state, created, seq);
CREATE INDEX turns_by_conversation ON turns (conversation, state);
CREATE INDEX turns_by_asker ON turns (asker, state);
CREATE INDEX turns_by_posting ON turns (reply_posted, state, created, seq);
-- The belt under `move`: one conversation never has two active turns.
CREATE UNIQUE INDEX turns_one_active ON turns (conversation) WHERE state IN ('running', 'waiting');

CREATE TABLE messages (
    conversation TEXT NOT NULL,
    position     BIGINT NOT NULL,
    body         BYTEA NOT NULL,
    PRIMARY KEY (conversation, position)
);

CREATE TABLE batches (
    id           TEXT NOT NULL PRIMARY KEY,
    turn         TEXT NOT NULL,
    server       TEXT NOT NULL,
    channel      TEXT NOT NULL,
    conversation TEXT NOT NULL,
    asker_seen   TEXT NOT NULL,
    opened       DOUBLE PRECISION NOT NULL,
    deadline     DOUBLE PRECISION NOT NULL,
    words        TEXT NOT NULL,
    already_ran  TEXT NOT NULL,
    card         TEXT,
    card_final   BOOLEAN NOT NULL,
    revision     BIGINT NOT NULL,
    -- NULL once the reminder was given.
    remind_at    DOUBLE PRECISION,
    ping         BOOLEAN NOT NULL,
    -- True once no request of the batch is pending; written by `settle` and nothing else.
    settled      BOOLEAN NOT NULL
);
CREATE INDEX batches_by_card ON batches (card);
CREATE INDEX batches_by_channel ON batches (settled, channel);
CREATE INDEX batches_by_server ON batches (settled, server);
CREATE INDEX batches_by_deadline ON batches (settled, deadline);
CREATE INDEX batches_by_reminder ON batches (settled, remind_at);
CREATE INDEX batches_by_showing ON batches (settled, card_final, card);

CREATE TABLE requests (
    id           TEXT NOT NULL PRIMARY KEY,
    seq          BIGINT NOT NULL UNIQUE,
    batch        TEXT NOT NULL REFERENCES batches (id),
    conversation TEXT NOT NULL,
    position     BIGINT NOT NULL,
    call_id      TEXT NOT NULL,
    tool         TEXT NOT NULL,
    args         TEXT NOT NULL,
    schema       TEXT NOT NULL,
    digest       TEXT NOT NULL,
    why          TEXT NOT NULL,
    approvers    TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('call', 'may_have_run')),
    metadata     TEXT NOT NULL,
    quorum       BIGINT NOT NULL,
    four_eyes    BOOLEAN NOT NULL,
    message      TEXT NOT NULL,
    preview      TEXT NOT NULL,
    held         BOOLEAN NOT NULL,
    missing      TEXT NOT NULL,
    operands     TEXT NOT NULL,
    votes        TEXT NOT NULL,
    edit         TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'cancelled')),
    choice       TEXT CHECK (choice IN ('accept', 'reject', 'ran', 'rerun', 'skip')),
    settled_by   TEXT,
    settled_at   DOUBLE PRECISION,
    note         TEXT,
    remember     TEXT CHECK (remember IN ('none', 'session', 'always'))
);
CREATE INDEX requests_by_batch ON requests (batch, seq);
CREATE INDEX requests_by_call ON requests (conversation, position, call_id, seq);

CREATE TABLE calls (
    conversation TEXT NOT NULL,
    position     BIGINT NOT NULL,
    call_id      TEXT NOT NULL,
    tool         TEXT NOT NULL,
    digest       TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('started', 'done', 'failed')),
    result       BYTEA,
    request      TEXT NOT NULL,
    turn         TEXT NOT NULL,
    at           DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (conversation, position, call_id)
);

CREATE TABLE grants (
    id           TEXT NOT NULL PRIMARY KEY,
    seq          BIGINT NOT NULL UNIQUE,
    key          TEXT NOT NULL,
    server       TEXT NOT NULL,
    conversation TEXT NOT NULL,
    tool         TEXT NOT NULL,
    args         TEXT NOT NULL,
    choice       TEXT NOT NULL CHECK (choice IN ('accept', 'reject')),
    given_by     TEXT NOT NULL,
    at           DOUBLE PRECISION NOT NULL,
    expires      DOUBLE PRECISION NOT NULL,
    uses_left    BIGINT NOT NULL,
    revoked      DOUBLE PRECISION
);
CREATE INDEX grants_by_key ON grants (key, seq);
CREATE INDEX grants_by_server ON grants (server, seq);

CREATE TABLE server_rules (
    id      TEXT NOT NULL PRIMARY KEY,
    seq     BIGINT NOT NULL UNIQUE,
    server  TEXT NOT NULL,
    rule    TEXT NOT NULL,
    made_by TEXT NOT NULL,
    at      DOUBLE PRECISION NOT NULL
);
CREATE INDEX server_rules_by_server ON server_rules (server, seq);

CREATE TABLE pauses (
    server    TEXT NOT NULL PRIMARY KEY,
    paused_by TEXT NOT NULL,
    at        DOUBLE PRECISION NOT NULL
);

-- Made once per installation; they never leave it.
CREATE TABLE keys (
    name  TEXT NOT NULL PRIMARY KEY,
    value BYTEA NOT NULL
);

CREATE TABLE audit (
    seq     BIGINT NOT NULL PRIMARY KEY,
    at      DOUBLE PRECISION NOT NULL,
    kind    TEXT NOT NULL,
    server  TEXT NOT NULL,
    subject TEXT NOT NULL,
    actor   TEXT NOT NULL,
    tool    TEXT NOT NULL,
    data    TEXT NOT NULL,
    -- Digest of a text in audit_texts, or empty.
    text    TEXT NOT NULL,
    -- Over all columns and the hash of the row before.
    hash    TEXT NOT NULL
);
CREATE INDEX audit_by_server ON audit (server, seq);
CREATE INDEX audit_by_actor ON audit (server, actor, seq);
CREATE INDEX audit_by_tool ON audit (server, tool, seq);
CREATE INDEX audit_by_kind ON audit (server, kind, seq);
CREATE INDEX audit_by_subject ON audit (server, subject, seq);

-- Kept apart, so that retention can remove texts and leave the chain whole. `at` is that of the newest row with it.
CREATE TABLE audit_texts (
    digest TEXT NOT NULL PRIMARY KEY,
    text   TEXT NOT NULL,
    at     DOUBLE PRECISION NOT NULL
);
CREATE INDEX audit_texts_by_age ON audit_texts (at);
