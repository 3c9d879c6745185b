-- Indexes over open work only. A settled batch leaves them, where it used to move inside every one of them, so that a
-- decision writes fewer pages. The columns of their conditions come first, so that SQLite prefers them to other indexes.

DROP INDEX batches_by_channel;
CREATE INDEX batches_by_channel ON batches (settled, channel) WHERE settled = FALSE;
DROP INDEX batches_by_server;
CREATE INDEX batches_by_server ON batches (settled, server) WHERE settled = FALSE;
DROP INDEX batches_by_deadline;
CREATE INDEX batches_by_deadline ON batches (settled, deadline) WHERE settled = FALSE;
DROP INDEX batches_by_reminder;
CREATE INDEX batches_by_reminder ON batches (settled, remind_at) WHERE settled = FALSE AND remind_at IS NOT NULL;
DROP INDEX batches_by_telling;
CREATE INDEX batches_by_telling ON batches (settled, untold, card)
    WHERE settled = FALSE AND untold = TRUE AND card IS NOT NULL;
DROP INDEX batches_by_lost_copies;
CREATE INDEX batches_by_lost_copies ON batches (settled, untold, card)
    WHERE settled = TRUE AND untold = TRUE AND card IS NOT NULL;
DROP INDEX batches_by_turn;
CREATE INDEX batches_by_turn ON batches (turn);
-- Cards that were not posted yet, and cards that do not show their end yet.
DROP INDEX batches_by_showing;
CREATE INDEX batches_by_missing_card ON batches (settled, card_final, card)
    WHERE settled = FALSE AND card_final = FALSE AND card IS NULL;
CREATE INDEX batches_by_stale_card ON batches (settled, card_final, card)
    WHERE settled = TRUE AND card_final = FALSE AND card IS NOT NULL;

DROP INDEX turns_by_posting;
CREATE INDEX turns_by_posting ON turns (reply_posted, state, created, seq)
    WHERE reply_posted = FALSE AND state IN ('done', 'failed', 'stopped');
