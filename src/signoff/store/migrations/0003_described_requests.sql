-- What a tool says about itself, for its card, as JSON. Empty for requests of older versions.
ALTER TABLE requests ADD COLUMN described TEXT NOT NULL DEFAULT '';
