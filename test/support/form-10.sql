CREATE TABLE action (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  action TEXT NOT NULL UNIQUE,
  application TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_ms INTEGER NOT NULL, built_in INTEGER NOT NULL DEFAULT 0 CHECK (built_in IN (0, 1)), edition INTEGER NOT NULL DEFAULT 1, compatibility TEXT NOT NULL DEFAULT 'full'
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
  payload BLOB NOT NULL
) STRICT;
CREATE INDEX event_action ON event (action_id);
CREATE UNIQUE INDEX event_idempotency_key ON event (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE clock_step (
  first_event INTEGER NOT NULL,
  first_delivery INTEGER NOT NULL,
  noticed_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE subscription (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  application TEXT NOT NULL,
  subscription TEXT NOT NULL,
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  handler TEXT NOT NULL,
  max_retries INTEGER NOT NULL,
  active INTEGER NOT NULL CHECK (active IN (0, 1)),
  disabled_reason TEXT,
  created_ms INTEGER NOT NULL,
  deleted_ms INTEGER, slowed_until_ms INTEGER, failing_since_ms INTEGER, failed_ms INTEGER, failing_ms INTEGER NOT NULL DEFAULT 0, settings TEXT, ordered INTEGER NOT NULL DEFAULT 0 CHECK (ordered IN (0, 1))) STRICT;
CREATE UNIQUE INDEX subscription_living ON subscription (application, subscription, action_id)
  WHERE deleted_ms IS NULL;
CREATE INDEX subscription_receiving ON subscription (action_id) WHERE active = 1 AND deleted_ms IS NULL;
CREATE TABLE binding (
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  subscription_id INTEGER NOT NULL REFERENCES subscription (rowid),
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
  last_error TEXT,
  CHECK ((state = 0) = (due_ms IS NOT NULL))
) STRICT;
CREATE TABLE lease (
  delivery_id INTEGER PRIMARY KEY REFERENCES delivery (rowid),
  claim_id INTEGER NOT NULL,
  claimed_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX delivery_event ON delivery (event_id, subscription_id);
CREATE INDEX delivery_subscription ON delivery (subscription_id);
CREATE INDEX delivery_due ON delivery (subscription_id, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX delivery_failed ON delivery (state) WHERE state = 3;
CREATE TABLE attempt (
  delivery_id INTEGER NOT NULL REFERENCES delivery (rowid),
  attempt INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('delivered', 'failed', 'returned')),
  status_code INTEGER,
  error_code TEXT,
  response BLOB, dns_ms INTEGER, connect_ms INTEGER, first_byte_ms INTEGER,
  PRIMARY KEY (delivery_id, attempt)
) STRICT, WITHOUT ROWID;
CREATE TABLE token (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  expires_ms INTEGER,
  last_used_ms INTEGER,
  created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE probe (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  tried INTEGER NOT NULL,
  filler BLOB NOT NULL
) STRICT;
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
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  selection TEXT NOT NULL CHECK (selection IN ('failed', 'missed', 'all')),
  from_ms INTEGER NOT NULL,
  to_ms INTEGER NOT NULL,
  ranges TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'cancelled', 'failed')),
  reason TEXT,
  total INTEGER,
  queued INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  finished_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX replay_running ON replay (subscription_id) WHERE status = 'running';
CREATE INDEX delivery_failed_event ON delivery (subscription_id, event_id, state) WHERE state = 3;
CREATE INDEX delivery_filtered ON delivery (state) WHERE state = 4;
CREATE TABLE data_identity (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL
) STRICT;
INSERT INTO data_identity (one, id) VALUES (1, lower(hex(randomblob(16))));
