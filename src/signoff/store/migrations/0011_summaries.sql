-- The model's summary of the older part of a long conversation, which runs read instead of that part.
CREATE TABLE summaries (
    conversation TEXT PRIMARY KEY,
    upto         BIGINT NOT NULL,
    text         TEXT NOT NULL
);
