"""The tables of the SQLite store and the statements worth naming (text only)."""

from __future__ import annotations

FORMAT = 1
"""``PRAGMA user_version`` of the files written here."""
APPLICATION_ID = 0x4B457631
"""``PRAGMA application_id``: "KEv1"."""

SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS journal (
    stream TEXT NOT NULL, seq INTEGER NOT NULL, event_id TEXT NOT NULL, event BLOB NOT NULL,
    commands BLOB NOT NULL, sent INTEGER NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (stream, seq), UNIQUE (stream, event_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS document (
    collection TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (collection, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blob (digest TEXT NOT NULL PRIMARY KEY, data BLOB NOT NULL);
PRAGMA user_version = {FORMAT};
PRAGMA application_id = {APPLICATION_ID};
COMMIT;
"""
APPEND = """
INSERT INTO journal (stream, seq, event_id, event, commands, sent, digest)
SELECT :stream, :seq, :event_id, :event, :commands, :sent, :digest
WHERE (SELECT COALESCE(MAX(seq) + 1, 0) FROM journal WHERE stream = :stream) = :seq
"""
READ = """
SELECT seq, event_id, event, commands, sent, digest FROM journal WHERE stream = ? AND seq >= ? ORDER BY seq LIMIT ?
"""
PUT_DOCUMENT = """
INSERT INTO document (collection, key, value) VALUES (?, ?, ?)
ON CONFLICT (collection, key) DO UPDATE SET value = excluded.value
"""
CREATE_DOCUMENT = "INSERT INTO document (collection, key, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
SCAN = "SELECT key, value FROM document WHERE collection = ? AND key >= ? ORDER BY key LIMIT ?"
