CREATE TABLE action (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  action TEXT NOT NULL UNIQUE,
  application TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_ms INTEGER NOT NULL, built_in INTEGER NOT NULL DEFAULT 0 CHECK (built_in IN (0, 1)), version INTEGER NOT NULL DEFAULT 1, compatibility TEXT NOT NULL DEFAULT 'full'
  CHECK (compatibility IN ('full', 'producer', 'consumer', 'none')), compatibility_against TEXT NOT NULL DEFAULT 'last'
  CHECK (compatibility_against IN ('last', 'all')), deprecated_ms INTEGER, retired_ms INTEGER, successor TEXT) STRICT;
CREATE TABLE action_revision (
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  revision INTEGER NOT NULL,
  schemata TEXT NOT NULL,
  created_ms INTEGER NOT NULL, compatibility TEXT
  CHECK (compatibility IN ('full', 'producer', 'consumer', 'none')), breaks INTEGER,
  PRIMARY KEY (action_id, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  revision INTEGER NOT NULL,
  timestamped_ms INTEGER NOT NULL,
  idempotency_key TEXT,
  payload BLOB NOT NULL, checksum INTEGER, idempotency_application TEXT) STRICT;
CREATE INDEX event_action ON event (action_id);
CREATE TABLE clock_step (
  first_event INTEGER NOT NULL,
  first_delivery INTEGER NOT NULL,
  noticed_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE subscription (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  application TEXT NOT NULL,
  subscription TEXT NOT NULL,
  handler TEXT NOT NULL,
  max_retries INTEGER NOT NULL,
  active INTEGER NOT NULL CHECK (active IN (0, 1)),
  disabled_reason TEXT,
  created_ms INTEGER NOT NULL,
  deleted_ms INTEGER, slowed_until_ms INTEGER, failing_since_ms INTEGER, last_failure_ms INTEGER, failing_total_ms INTEGER NOT NULL DEFAULT 0, settings TEXT, ordered INTEGER NOT NULL DEFAULT 0 CHECK (ordered IN (0, 1)), retry_wait_until_ms INTEGER, mode TEXT NOT NULL DEFAULT 'push' CHECK (mode IN ('push', 'pull')), last_claim_ms INTEGER, action TEXT NOT NULL DEFAULT '', order_key TEXT) STRICT;
CREATE TABLE binding (
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  subscription_id INTEGER NOT NULL REFERENCES subscription (rowid), receives INTEGER NOT NULL DEFAULT 0 CHECK (receives IN (0, 1)),
  PRIMARY KEY (action_id, subscription_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id INTEGER NOT NULL REFERENCES event (rowid),
  subscription_id INTEGER NOT NULL REFERENCES subscription (rowid),
  state INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  due_ms INTEGER,
  finished_ms INTEGER,
  last_error TEXT, priority INTEGER NOT NULL DEFAULT 1 CHECK (priority IN (0, 1)), sequence INTEGER, first_start_ms INTEGER, first_duration_ms INTEGER, first_status_code INTEGER, key INTEGER,
  CHECK ((state = 0) = (due_ms IS NOT NULL))
) STRICT;
CREATE TABLE lease (
  delivery_id INTEGER PRIMARY KEY REFERENCES delivery (rowid),
  claim_id INTEGER NOT NULL,
  claimed_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL, consumer TEXT) STRICT;
CREATE UNIQUE INDEX delivery_event ON delivery (event_id, subscription_id);
CREATE INDEX delivery_subscription ON delivery (subscription_id);
CREATE INDEX delivery_failed ON delivery (state) WHERE state = 3;
CREATE TABLE attempt (
  delivery_id INTEGER NOT NULL REFERENCES delivery (rowid),
  attempt INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('delivered', 'failed', 'returned')),
  status_code INTEGER,
  error_code TEXT,
  response BLOB, dns_ms INTEGER, connect_ms INTEGER, first_byte_ms INTEGER, consumer TEXT,
  PRIMARY KEY (delivery_id, attempt)
) STRICT, WITHOUT ROWID;
CREATE TABLE token (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  expires_ms INTEGER,
  last_used_ms INTEGER,
  created_ms INTEGER NOT NULL, parent_id INTEGER) STRICT;
CREATE TABLE event_count (
  level INTEGER NOT NULL,
  block INTEGER NOT NULL,
  action_id INTEGER NOT NULL,
  events INTEGER NOT NULL CHECK (events >= 0),
  PRIMARY KEY (level, block, action_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE subscription_secret (
  subscription_id INTEGER PRIMARY KEY REFERENCES subscription (rowid),
  secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_until_ms INTEGER,
  bearer TEXT NOT NULL CHECK (bearer IN ('secret', 'own', 'none')),
  bearer_token TEXT,
  CHECK ((previous_secret IS NULL) = (previous_until_ms IS NULL)),
  CHECK ((bearer = 'own') = (bearer_token IS NOT NULL))
) STRICT;
CREATE INDEX subscription_secret_overlap ON subscription_secret (previous_until_ms)
  WHERE previous_until_ms IS NOT NULL;
CREATE TABLE encryption (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  proof TEXT NOT NULL
) STRICT;
CREATE TABLE replay (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  subscription_id INTEGER NOT NULL REFERENCES subscription (rowid),
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  ranges TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'cancelled', 'failed')),
  reason TEXT,
  total INTEGER,
  queued INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  finished_ms INTEGER, action TEXT NOT NULL DEFAULT '', selection TEXT NOT NULL DEFAULT 'failed'
  CHECK (selection IN ('failed', 'waiting', 'missed', 'all'))) STRICT;
CREATE UNIQUE INDEX replay_running ON replay (subscription_id) WHERE status = 'running';
CREATE INDEX delivery_failed_event ON delivery (subscription_id, event_id, state) WHERE state = 3;
CREATE INDEX delivery_filtered ON delivery (state) WHERE state = 4;
CREATE TABLE data_identity (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL
) STRICT;
CREATE TABLE last_backup (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  started_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE write_check (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  filler BLOB NOT NULL
) STRICT;
CREATE INDEX delivery_due ON delivery (subscription_id, priority, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX delivery_sequence ON delivery (subscription_id, sequence)
  WHERE sequence IS NOT NULL AND priority = 1 AND due_ms IS NOT NULL;
CREATE TABLE payload_names (
  action_id INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  names TEXT NOT NULL,
  PRIMARY KEY (action_id, revision),
  FOREIGN KEY (action_id, revision) REFERENCES action_revision (action_id, revision)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX subscription_living ON subscription (application, subscription, action)
  WHERE deleted_ms IS NULL;
CREATE INDEX subscription_action ON subscription (action) WHERE deleted_ms IS NULL;
CREATE INDEX binding_receiving ON binding (action_id, subscription_id) WHERE receives = 1;
CREATE INDEX binding_subscription ON binding (subscription_id) WHERE receives = 1;
CREATE TABLE audit (
  rowid INTEGER PRIMARY KEY,
  changed_ms INTEGER NOT NULL,
  change TEXT NOT NULL,
  record_id INTEGER,
  name TEXT NOT NULL,
  by_name TEXT NOT NULL,
  token_id INTEGER,
  address TEXT,
  members TEXT
) STRICT;
CREATE INDEX audit_changed ON audit (changed_ms);
CREATE INDEX subscription_keyed ON subscription (rowid) WHERE order_key IS NOT NULL AND deleted_ms IS NULL;
CREATE INDEX delivery_key ON delivery (subscription_id, key, state, priority, sequence)
  WHERE key IS NOT NULL AND state IN (0, 5);
CREATE INDEX delivery_key_failing ON delivery (subscription_id, failures)
  WHERE key IS NOT NULL AND due_ms IS NOT NULL AND failures > 0;
CREATE TABLE stats (
  span INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  id INTEGER NOT NULL,
  application TEXT NOT NULL,
  published INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  failed_attempts INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  latency BLOB,
  attempts BLOB,
  last_error TEXT,
  PRIMARY KEY (span, at, kind, id, application)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX event_idempotency_key ON event (idempotency_key, idempotency_application)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX delivery_waiting_event ON delivery (subscription_id, event_id)
  WHERE failures > 0 AND due_ms IS NOT NULL;
CREATE TABLE removed_events (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  last_event INTEGER NOT NULL,
  last_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE stats_open (
  at INTEGER NOT NULL,
  action_id INTEGER NOT NULL,
  subscription_id INTEGER NOT NULL,
  measure INTEGER NOT NULL,
  count INTEGER NOT NULL,
  last_error TEXT,
  PRIMARY KEY (at, action_id, subscription_id, measure)
) STRICT, WITHOUT ROWID;
INSERT INTO data_identity (one, id) VALUES (1, lower(hex(randomblob(16))));
