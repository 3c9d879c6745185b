-- The audit only grows. Triggers are the one thing that the two databases spell differently, hence the suffix.

CREATE TRIGGER audit_refuses_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only: no row may be changed');
END;

CREATE TRIGGER audit_refuses_delete BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only: no row may be removed');
END;

-- INSERT OR REPLACE removes rows without firing the trigger above, and a gap would hide a missing row.
CREATE TRIGGER audit_refuses_gaps BEFORE INSERT ON audit
WHEN NEW.seq <> (SELECT COALESCE(MAX(seq), 0) + 1 FROM audit)
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only: rows are numbered without gaps');
END;

-- A text may go, by retention, but never become another.
CREATE TRIGGER audit_texts_refuse_update BEFORE UPDATE OF digest, text ON audit_texts
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only: no text may be changed');
END;
