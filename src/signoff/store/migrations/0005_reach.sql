-- How approvers are told about a card, the messages that tell them, copies of cards, and escalation.

ALTER TABLE batches ADD COLUMN notify TEXT NOT NULL DEFAULT '[]';
ALTER TABLE batches ADD COLUMN untold BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX batches_by_telling ON batches (settled, untold);

ALTER TABLE requests ADD COLUMN escalate_to TEXT NOT NULL DEFAULT '[]';
-- NULL once the request was escalated.
ALTER TABLE requests ADD COLUMN escalate_at DOUBLE PRECISION;
CREATE INDEX requests_by_escalation ON requests (escalate_at) WHERE state = 'pending' AND escalate_at IS NOT NULL;

-- The messages in approvals channels that show a card, too.
CREATE TABLE card_copies (
    batch   TEXT NOT NULL REFERENCES batches (id),
    channel TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (batch, channel)
);
CREATE INDEX card_copies_by_message ON card_copies (channel, message);

-- Pings, reminders and direct messages about a card. A row is removed once its message was removed or changed.
CREATE TABLE card_notices (
    batch   TEXT NOT NULL REFERENCES batches (id),
    kind    TEXT NOT NULL,
    channel TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (batch, kind, channel, message)
);
