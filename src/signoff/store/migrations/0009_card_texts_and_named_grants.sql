-- What a tool says about itself, for its card, as JSON. Empty for requests of older versions.
ALTER TABLE requests ADD COLUMN described TEXT NOT NULL DEFAULT '';

-- The arguments that a grant names, as a JSON list, if the others are free. Empty: the grant covers exactly one call.
ALTER TABLE grants ADD COLUMN named TEXT NOT NULL DEFAULT '';
