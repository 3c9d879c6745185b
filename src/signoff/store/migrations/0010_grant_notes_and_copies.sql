-- The grant that a decision made, or that settled a request, as JSON for the card. Empty: none, or of an older version.
ALTER TABLE requests ADD COLUMN grant_note TEXT NOT NULL DEFAULT '';

-- The reply of a turn names the remembered decisions that its calls ran by.
CREATE INDEX batches_by_turn ON batches (turn, settled);

-- Cards that were settled before it was noted that all approvers were told: a copy may be there that nobody noted.
CREATE INDEX batches_by_lost_copies ON batches (opened, id) WHERE settled = TRUE AND untold = TRUE AND card IS NOT NULL;
