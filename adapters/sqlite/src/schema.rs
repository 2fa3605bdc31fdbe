//! The tables, and what tells the file from others.

/// `PRAGMA application_id`: "cgat".
pub(crate) const APPLICATION: i64 = 0x6367_6174;
/// `PRAGMA user_version`. Another one is refused, never guessed (invariant N6).
pub(crate) const VERSION: i64 = 1;

/// Counts are kept by triggers, in the transaction that changes what they count.
///
/// `principal_digest` covers the tenant, so nothing here is found by a principal's name alone (invariant P2).
pub(crate) const CREATE: &str = "
CREATE TABLE confirmations (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    time_ms INTEGER NOT NULL CHECK (time_ms >= 0),
    tickets INTEGER NOT NULL CHECK (tickets >= 0),
    bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;
INSERT INTO confirmations VALUES (1, 0, 0, 0);

CREATE TABLE tickets (
    ticket BLOB PRIMARY KEY NOT NULL CHECK (length(ticket) = 32),
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'cancelled', 'claimed')),
    confirmed_by TEXT NOT NULL CHECK (confirmed_by IN ('caller', 'approver')),
    issued_ms INTEGER NOT NULL CHECK (issued_ms >= 0),
    expires_ms INTEGER NOT NULL CHECK (expires_ms >= 0),
    tool_digest BLOB NOT NULL CHECK (length(tool_digest) = 32),
    args_digest BLOB NOT NULL CHECK (length(args_digest) = 32),
    caller_digest BLOB NOT NULL CHECK (length(caller_digest) = 32),
    principal_digest BLOB NOT NULL CHECK (length(principal_digest) = 32),
    tool TEXT NOT NULL,
    tenant TEXT,
    principal TEXT,
    channel TEXT NOT NULL,
    request_id TEXT NOT NULL,
    scope TEXT,
    summary TEXT NOT NULL,
    arguments BLOB NOT NULL,
    bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;
CREATE INDEX tickets_by_expiry ON tickets (expires_ms);
CREATE INDEX tickets_to_decide ON tickets (tenant, issued_ms, ticket) WHERE state = 'pending' AND confirmed_by = 'approver';

CREATE TABLE principals (
    principal_digest BLOB PRIMARY KEY NOT NULL,
    tickets INTEGER NOT NULL CHECK (tickets >= 0)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER ticket_issued AFTER INSERT ON tickets BEGIN
    UPDATE confirmations SET tickets = tickets + 1, bytes = bytes + NEW.bytes;
    INSERT INTO principals VALUES (NEW.principal_digest, 1) ON CONFLICT DO UPDATE SET tickets = tickets + 1;
END;
CREATE TRIGGER ticket_settled AFTER UPDATE OF bytes ON tickets BEGIN
    UPDATE confirmations SET bytes = bytes + NEW.bytes - OLD.bytes;
END;
CREATE TRIGGER ticket_forgotten AFTER DELETE ON tickets BEGIN
    UPDATE confirmations SET tickets = tickets - 1, bytes = bytes - OLD.bytes;
    UPDATE principals SET tickets = tickets - 1 WHERE principal_digest = OLD.principal_digest;
    DELETE FROM principals WHERE principal_digest = OLD.principal_digest AND tickets = 0;
END;

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY CHECK (seq > 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    line TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;

CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL CHECK (seq >= 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
INSERT INTO audit_head VALUES (1, 0, zeroblob(32));
";
