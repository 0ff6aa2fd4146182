/** One version of the data file's schema. It is never edited once released; a change of the schema is a new version. */
export interface Migration {
  /** From 1 without gaps; the file's `user_version` after it. */
  readonly version: number;
  readonly name: string;
  readonly statements: readonly string[];
  /** Of all objects in the file after it, see `migrate.ts`; a test compares each with what the statements make. */
  readonly schemaDigest: string;
}

/** Those of the releases up to 0.2.0. */
export const RELEASED_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "actions, events, subscriptions, deliveries, tokens",
    schemaDigest: "c96d176940a17b6de7910949116f6552",
    statements: [
      `CREATE TABLE action (
        rowid INTEGER PRIMARY KEY AUTOINCREMENT,
        action TEXT NOT NULL UNIQUE,
        application TEXT NOT NULL,
        revision INTEGER NOT NULL,
        created_ms INTEGER NOT NULL
      ) STRICT`,
      `CREATE TABLE action_revision (
        action_id INTEGER NOT NULL REFERENCES action (rowid),
        revision INTEGER NOT NULL,
        schemata TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        PRIMARY KEY (action_id, revision)
      ) STRICT, WITHOUT ROWID`,

      // Rowids of events and deliveries rise with their time, so a range of time is a range of rowids. Where the clock was
      // set back, a row in clock_step starts a new segment.
      `CREATE TABLE event (
        rowid INTEGER PRIMARY KEY AUTOINCREMENT,
        action_id INTEGER NOT NULL REFERENCES action (rowid),
        revision INTEGER NOT NULL,
        timestamped_ms INTEGER NOT NULL,
        idempotency_key TEXT,
        payload BLOB NOT NULL
      ) STRICT`,
      "CREATE INDEX event_action ON event (action_id)",
      `CREATE UNIQUE INDEX event_idempotency_key ON event (idempotency_key) WHERE idempotency_key IS NOT NULL`,
      `CREATE TABLE clock_step (
        first_event INTEGER NOT NULL,
        first_delivery INTEGER NOT NULL,
        noticed_ms INTEGER NOT NULL
      ) STRICT`,

      // A deleted subscription stays, so that its deliveries keep their names.
      `CREATE TABLE subscription (
        rowid INTEGER PRIMARY KEY AUTOINCREMENT,
        application TEXT NOT NULL,
        subscription TEXT NOT NULL,
        action_id INTEGER NOT NULL REFERENCES action (rowid),
        handler TEXT NOT NULL,
        max_retries INTEGER NOT NULL,
        active INTEGER NOT NULL CHECK (active IN (0, 1)),
        disabled_reason TEXT,
        secret TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        deleted_ms INTEGER
      ) STRICT`,
      `CREATE UNIQUE INDEX subscription_living ON subscription (application, subscription, action_id)
        WHERE deleted_ms IS NULL`,
      `CREATE INDEX subscription_receiving ON subscription (action_id) WHERE active = 1 AND deleted_ms IS NULL`,
      // Every action a subscription was ever bound to, to find the deliveries of an action.
      `CREATE TABLE binding (
        action_id INTEGER NOT NULL REFERENCES action (rowid),
        subscription_id INTEGER NOT NULL REFERENCES subscription (rowid),
        PRIMARY KEY (action_id, subscription_id)
      ) STRICT, WITHOUT ROWID`,

      // state: 0 unfinished, to be sent at due_ms or being sent now (see lease), 2 delivered, 3 failed. Held and cancelled
      // follow from the subscription, so pausing and deleting cost one row. attempt: the last one that ended.
      `CREATE TABLE delivery (
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
      ) STRICT`,
      // The deliveries under way, of state 0: a few pages. Claiming one and releasing it do not change the delivery itself.
      `CREATE TABLE lease (
        delivery_id INTEGER PRIMARY KEY REFERENCES delivery (rowid),
        claim_id INTEGER NOT NULL,
        claimed_ms INTEGER NOT NULL,
        until_ms INTEGER NOT NULL
      ) STRICT`,
      "CREATE UNIQUE INDEX delivery_event ON delivery (event_id, subscription_id)",
      "CREATE INDEX delivery_subscription ON delivery (subscription_id)",
      "CREATE INDEX delivery_due ON delivery (subscription_id, due_ms) WHERE due_ms IS NOT NULL",
      "CREATE INDEX delivery_failed ON delivery (state) WHERE state = 3",
      `CREATE TABLE attempt (
        delivery_id INTEGER NOT NULL REFERENCES delivery (rowid),
        attempt INTEGER NOT NULL,
        started_ms INTEGER NOT NULL,
        duration_ms INTEGER NOT NULL,
        outcome TEXT NOT NULL CHECK (outcome IN ('delivered', 'failed', 'returned')),
        status_code INTEGER,
        error_code TEXT,
        response BLOB,
        PRIMARY KEY (delivery_id, attempt)
      ) STRICT, WITHOUT ROWID`,

      `CREATE TABLE token (
        rowid INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        scopes TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE,
        expires_ms INTEGER,
        last_used_ms INTEGER,
        created_ms INTEGER NOT NULL
      ) STRICT`,
      // One row, rewritten to check whether the disk takes writes again.
      `CREATE TABLE probe (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        tried INTEGER NOT NULL,
        filler BLOB NOT NULL
      ) STRICT`,
    ],
  },
  {
    version: 2,
    name: "counts of events",
    schemaDigest: "8a695a2bfb98f5e487bc4945679cedbd",
    statements: [
      // How many events of an action (of all actions: 0) are in a closed block of rowids; see events/counts.ts. Filled when
      // the file is opened.
      `CREATE TABLE event_count (
        level INTEGER NOT NULL,
        block INTEGER NOT NULL,
        action_id INTEGER NOT NULL,
        events INTEGER NOT NULL CHECK (events >= 0),
        PRIMARY KEY (level, block, action_id)
      ) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    version: 3,
    name: "secrets apart, rotated, encrypted",
    schemaDigest: "e0c407803c5a56daf46900fb06ffc427",
    statements: [
      // Texts that may be encrypted, see secret-cipher.ts. A deleted subscription has no row here.
      `CREATE TABLE subscription_secret (
        subscription_id INTEGER PRIMARY KEY REFERENCES subscription (rowid),
        secret TEXT NOT NULL,
        previous_secret TEXT,
        previous_until_ms INTEGER,
        bearer TEXT NOT NULL CHECK (bearer IN ('secret', 'own', 'none')),
        bearer_token TEXT,
        CHECK ((previous_secret IS NULL) = (previous_until_ms IS NULL)),
        CHECK ((bearer = 'own') = (bearer_token IS NOT NULL))
      ) STRICT`,
      `CREATE INDEX subscription_secret_overlap ON subscription_secret (previous_until_ms)
        WHERE previous_until_ms IS NOT NULL`,
      `INSERT INTO subscription_secret (subscription_id, secret, bearer)
        SELECT rowid, secret, 'secret' FROM subscription WHERE deleted_ms IS NULL`,
      "ALTER TABLE subscription DROP COLUMN secret",
      // Holds one row where secrets are encrypted: a known text under the same key, which tells the right key.
      `CREATE TABLE encryption (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        proof TEXT NOT NULL
      ) STRICT`,
    ],
  },
  {
    version: 4,
    name: "replays",
    schemaDigest: "0c066951ff33f6bfc630bbf28eed96f5",
    statements: [
      // ranges: the rowids of events that are still to be gone through, [[low, high], …]; its step takes them off the
      // front in the transaction that makes their deliveries due.
      `CREATE TABLE replay (
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
      ) STRICT`,
      "CREATE UNIQUE INDEX replay_running ON replay (subscription_id) WHERE status = 'running'",
      // The failed deliveries of one subscription by their events. With the state in it, it answers alone.
      "CREATE INDEX delivery_failed_event ON delivery (subscription_id, event_id, state) WHERE state = 3",
    ],
  },
  {
    version: 5,
    name: "what handlers have shown",
    schemaDigest: "653ce0f6fdc6e3ccd4990b8720abd522",
    statements: [
      // No attempt starts before this, except one that a person requested.
      "ALTER TABLE subscription ADD COLUMN slowed_until_ms INTEGER",
      // Since the last success: when the first attempt failed, and the last, and what counts of the time between.
      "ALTER TABLE subscription ADD COLUMN failing_since_ms INTEGER",
      "ALTER TABLE subscription ADD COLUMN failed_ms INTEGER",
      "ALTER TABLE subscription ADD COLUMN failing_ms INTEGER NOT NULL DEFAULT 0",
      // Of an attempt for which a connection was made.
      "ALTER TABLE attempt ADD COLUMN dns_ms INTEGER",
      "ALTER TABLE attempt ADD COLUMN connect_ms INTEGER",
      "ALTER TABLE attempt ADD COLUMN first_byte_ms INTEGER",
    ],
  },
  {
    version: 6,
    name: "settings of subscriptions",
    schemaDigest: "3d6eff3454fa45f021f44f8908b5f689",
    statements: [
      // JSON, of the members of `SubscriptionSettings` that are set; NULL where none is.
      "ALTER TABLE subscription ADD COLUMN settings TEXT",
      // Apart from the others, as it decides which of its deliveries may be claimed.
      "ALTER TABLE subscription ADD COLUMN ordered INTEGER NOT NULL DEFAULT 0 CHECK (ordered IN (0, 1))",
      // A delivery that its subscription's filter excluded is of state 4.
      "CREATE INDEX delivery_filtered ON delivery (state) WHERE state = 4",
    ],
  },
  {
    version: 7,
    name: "actions of the service itself",
    schemaDigest: "1db6c9c8eb473163b6868dd3916658cb",
    statements: [
      // Whether its events are published by evreg about itself. Those actions are made when the file is opened.
      "ALTER TABLE action ADD COLUMN built_in INTEGER NOT NULL DEFAULT 0 CHECK (built_in IN (0, 1))",
    ],
  },
  {
    version: 8,
    name: "compatibility and the end of actions",
    schemaDigest: "4b1e4b21e64b670a2c9e5ed2bf55989f",
    statements: [
      // Counts every change of the row: what was decided on an older one is not written.
      "ALTER TABLE action ADD COLUMN edition INTEGER NOT NULL DEFAULT 1",
      `ALTER TABLE action ADD COLUMN compatibility TEXT NOT NULL DEFAULT 'full'
        CHECK (compatibility IN ('full', 'producer', 'consumer', 'none'))`,
      `ALTER TABLE action ADD COLUMN compatibility_against TEXT NOT NULL DEFAULT 'last'
        CHECK (compatibility_against IN ('last', 'all'))`,
      "ALTER TABLE action ADD COLUMN deprecated_ms INTEGER",
      "ALTER TABLE action ADD COLUMN retired_ms INTEGER",
      // The name of another action; names never change and actions never go.
      "ALTER TABLE action ADD COLUMN successor TEXT",
    ],
  },
  {
    version: 9,
    name: "what revisions were admitted under",
    schemaDigest: "b561e9802644da0a3e1c4cc5e8d4e228",
    statements: [
      // NULL for what nothing was compared with: the first of an action, and those applied before this was stored.
      `ALTER TABLE action_revision ADD COLUMN compatibility TEXT
        CHECK (compatibility IN ('full', 'producer', 'consumer', 'none'))`,
      "ALTER TABLE action_revision ADD COLUMN breaks INTEGER",
    ],
  },
  {
    version: 10,
    name: "an identity of the data",
    schemaDigest: "3038942eb68023e9463df42b2526e272",
    statements: [
      // See id-reservation.ts.
      `CREATE TABLE data_identity (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        id TEXT NOT NULL
      ) STRICT`,
      "INSERT INTO data_identity (one, id) VALUES (1, lower(hex(randomblob(16))))",
    ],
  },
  {
    version: 11,
    name: "checksums of events",
    schemaDigest: "7b60f000f1c933bff9d97e761a2cb8d7",
    statements: [
      // See events/payloads.ts. NULL for events of before: made now, it would vouch for what may be damaged already.
      // Without a CHECK, for which the engine would read every event through.
      "ALTER TABLE event ADD COLUMN checksum INTEGER",
    ],
  },
  {
    version: 12,
    name: "a column for each meaning",
    schemaDigest: "ac12524cecfa5c347b90871a981973d3",
    statements: [
      // Before, `due_ms` had three meanings: below 0 a delivery that a person requested, 2^50 ms before its time; in an
      // ordered subscription the rowid of the event; else a time. Now it is always a time.
      "DROP INDEX delivery_due",
      // 0 requested by a person, so sent before all others of its subscription and at any time; 1 normal.
      "ALTER TABLE delivery ADD COLUMN priority INTEGER NOT NULL DEFAULT 1 CHECK (priority IN (0, 1))",
      // The position in an ordered subscription: the rowid of the event. Read only while the subscription is ordered.
      "ALTER TABLE delivery ADD COLUMN sequence INTEGER",
      `UPDATE delivery SET
          priority = iif(due_ms < 0, 0, 1),
          due_ms = CASE WHEN due_ms < 0 THEN due_ms + (1 << 50) WHEN due_ms = event_id THEN created_ms ELSE due_ms END,
          sequence = event_id
        WHERE due_ms IS NOT NULL AND (due_ms < 0 OR due_ms = event_id
          OR subscription_id IN (SELECT rowid FROM subscription WHERE ordered = 1))`,

      // Until then an ordered subscription waits for the retry of its first delivery. It was in `slowed_until_ms`.
      "ALTER TABLE subscription ADD COLUMN retry_wait_until_ms INTEGER",
      "UPDATE subscription SET retry_wait_until_ms = slowed_until_ms, slowed_until_ms = NULL WHERE ordered = 1",
      "ALTER TABLE subscription RENAME COLUMN failed_ms TO last_failure_ms",
      "ALTER TABLE subscription RENAME COLUMN failing_ms TO failing_total_ms",
      "ALTER TABLE action RENAME COLUMN edition TO version",

      // They replace `probe`, whose `tried` was a count of trial writes or, as a much larger number, the time of a backup.
      `CREATE TABLE last_backup (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        started_ms INTEGER NOT NULL
      ) STRICT`,
      "INSERT INTO last_backup (one, started_ms) SELECT one, tried FROM probe WHERE tried > 1000000000",
      // Rewritten to check whether the disk takes writes again.
      `CREATE TABLE write_check (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        filler BLOB NOT NULL
      ) STRICT`,
      "DROP TABLE probe",

      "CREATE INDEX delivery_due ON delivery (subscription_id, priority, due_ms) WHERE due_ms IS NOT NULL",
      `CREATE INDEX delivery_sequence ON delivery (subscription_id, sequence)
        WHERE sequence IS NOT NULL AND priority = 1 AND due_ms IS NOT NULL`,
    ],
  },
];
