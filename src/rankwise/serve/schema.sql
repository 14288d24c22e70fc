-- The state of a service; its docstring in statefile.py says what the tables are.
CREATE TABLE event(
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL, ranking TEXT,
    body BLOB, digest BLOB NOT NULL, reads BLOB, chain BLOB NOT NULL, at REAL NOT NULL);
CREATE TABLE shown(
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, model TEXT NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL,
    documents INTEGER NOT NULL, ids BLOB NOT NULL, wide INTEGER NOT NULL, x BLOB NOT NULL,
    place BLOB NOT NULL, experiment TEXT, teams BLOB);
CREATE TABLE outcome(ranking TEXT PRIMARY KEY, clicked REAL, closed INTEGER) WITHOUT ROWID;
CREATE TABLE file(digest TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE snapshot(seq INTEGER PRIMARY KEY, digest BLOB NOT NULL, body BLOB NOT NULL, at REAL NOT NULL);
CREATE TABLE version(model TEXT, seq INTEGER, digest TEXT, at REAL, note TEXT, PRIMARY KEY(model, seq));
CREATE TABLE fact(name TEXT PRIMARY KEY, value);
CREATE INDEX clicks_of_ranking ON event(ranking) WHERE kind = 'clicks';
CREATE INDEX event_with_file ON event(kind) WHERE kind IN ('model', 'promote', 'rollback');
CREATE INDEX outcome_waiting ON outcome(clicked) WHERE closed IS NULL;
CREATE INDEX shown_at ON shown(at);
CREATE TABLE unit(unit INTEGER PRIMARY KEY);
