-- The question and the form of a request that needs an answer, as JSON; empty for other requests. The kind of such a
-- row is `call`, and its choice is `accept` for an answer and `reject` if somebody declined.
ALTER TABLE requests ADD COLUMN inquiry TEXT NOT NULL DEFAULT '';
-- Person id -> what they have filled in so far, as JSON.
ALTER TABLE requests ADD COLUMN drafts TEXT NOT NULL DEFAULT '';
-- The answer that settled the request, as JSON; empty if there is none.
ALTER TABLE requests ADD COLUMN answer TEXT NOT NULL DEFAULT '';
CREATE INDEX requests_inquiring ON requests (state, batch) WHERE inquiry <> '';
