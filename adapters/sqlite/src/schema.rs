//! The tables, and what tells the file from others.

/// `PRAGMA application_id`: "cgat".
pub(crate) const APPLICATION: i64 = 0x6367_6174;
/// `PRAGMA user_version`. Another one is refused, never guessed (invariant N6).
pub(crate) const VERSION: i64 = 5;

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
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'cancelled', 'reserved', 'in_doubt', 'done')),
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
    bytes INTEGER NOT NULL CHECK (bytes >= 0),
    needs INTEGER NOT NULL CHECK (needs BETWEEN 1 AND 255),
    held_by BLOB CHECK (length(held_by) = 32),
    held_until_ms INTEGER CHECK (held_until_ms >= 0),
    took_effect INTEGER CHECK (took_effect IN (0, 1)),
    proof TEXT,
    grant_id BLOB CHECK (length(grant_id) = 32),
    CHECK ((state = 'reserved') = (held_by IS NOT NULL AND held_until_ms IS NOT NULL)),
    CHECK ((state = 'done') = (took_effect IS NOT NULL))
) STRICT;
CREATE INDEX tickets_by_expiry ON tickets (expires_ms) WHERE state NOT IN ('reserved', 'in_doubt');
CREATE INDEX tickets_held ON tickets (held_until_ms) WHERE state = 'reserved';
CREATE INDEX tickets_of_a_grant ON tickets (grant_id) WHERE grant_id IS NOT NULL AND state = 'reserved';
CREATE INDEX tickets_to_decide ON tickets (tenant, issued_ms, ticket) WHERE state = 'pending' AND confirmed_by = 'approver';

CREATE TABLE approvals (
    ticket BLOB NOT NULL,
    place INTEGER NOT NULL CHECK (place > 0),
    principal TEXT NOT NULL,
    PRIMARY KEY (ticket, place),
    UNIQUE (ticket, principal)
) STRICT, WITHOUT ROWID;

CREATE TABLE grants (
    grant_id BLOB PRIMARY KEY NOT NULL CHECK (length(grant_id) = 32),
    tool TEXT NOT NULL,
    tool_digest BLOB NOT NULL CHECK (length(tool_digest) = 32),
    tenant TEXT,
    principal TEXT NOT NULL,
    args_digest BLOB CHECK (length(args_digest) = 32),
    args_including TEXT,
    args_fitting TEXT,
    given_by TEXT NOT NULL,
    given_ms INTEGER NOT NULL CHECK (given_ms >= 0),
    expires_ms INTEGER NOT NULL CHECK (expires_ms >= 0),
    max_uses INTEGER NOT NULL CHECK (max_uses > 0),
    used INTEGER NOT NULL CHECK (used BETWEEN 0 AND max_uses),
    revoked INTEGER NOT NULL CHECK (revoked IN (0, 1)),
    CHECK ((args_digest IS NOT NULL) + (args_including IS NOT NULL) + (args_fitting IS NOT NULL) = 1)
) STRICT;
CREATE INDEX grants_of_a_principal ON grants (tool_digest, principal) WHERE revoked = 0;

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
    DELETE FROM approvals WHERE ticket = OLD.ticket;
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
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit WHEN OLD.seq > (SELECT seq FROM audit_begin)
BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;

CREATE TABLE audit_begin (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL CHECK (seq >= 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;
INSERT INTO audit_begin VALUES (1, 0, zeroblob(32), 0);
CREATE TRIGGER audit_begins_later BEFORE UPDATE OF seq ON audit_begin WHEN NEW.seq < OLD.seq
BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_grew AFTER INSERT ON audit BEGIN
    UPDATE audit_begin SET bytes = bytes + octet_length(NEW.line) + 1;
END;
CREATE TRIGGER audit_put_aside AFTER DELETE ON audit BEGIN
    UPDATE audit_begin SET bytes = max(0, bytes - octet_length(OLD.line) - 1);
END;

CREATE TABLE audit_lost (
    request_id TEXT NOT NULL,
    tool TEXT NOT NULL
) STRICT;
CREATE INDEX audit_lost_by_call ON audit_lost (request_id, tool);

CREATE TABLE audit_open (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL CHECK (seq >= 0),
    calls TEXT NOT NULL
) STRICT;
INSERT INTO audit_open VALUES (1, 0, '[]');

CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL CHECK (seq >= 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
INSERT INTO audit_head VALUES (1, 0, zeroblob(32));
";
