-- When a turn ended, to find a reply again that was posted but not noted. NULL for turns of earlier versions.
ALTER TABLE turns ADD COLUMN ended DOUBLE PRECISION;
