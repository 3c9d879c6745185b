-- When each call started, and the masked beginning of its result, for the card. NULL in rows of older versions.
ALTER TABLE calls ADD COLUMN started DOUBLE PRECISION;
ALTER TABLE calls ADD COLUMN line TEXT;

-- The message that shows how the run is going. Empty while it is posted for the first time; NULL if there is none.
ALTER TABLE turns ADD COLUMN status TEXT;
CREATE INDEX turns_by_status ON turns (state, created, seq) WHERE status IS NOT NULL;
