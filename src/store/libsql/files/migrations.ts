import { type Migration, RELEASED_MIGRATIONS } from "./released-migrations.ts";

/** Tells an evreg file from any other SQLite file ("EvRg"). */
export const APPLICATION_ID = 0x45765267;

export const MIGRATIONS: readonly Migration[] = [
  ...RELEASED_MIGRATIONS,
  {
    version: 13,
    name: "first attempts that delivered, with their deliveries",
    schemaDigest: "67294bdf58d582de5e43c5ae8d5fa6da",
    statements: [
      // A first attempt that delivered and of which nothing else is to be said has no row in `attempt`, which would be as
      // large as its delivery's. Earlier ones keep theirs. `first_start_ms`: after `created_ms`.
      "ALTER TABLE delivery ADD COLUMN first_start_ms INTEGER",
      "ALTER TABLE delivery ADD COLUMN first_duration_ms INTEGER",
      "ALTER TABLE delivery ADD COLUMN first_status_code INTEGER",
    ],
  },
  {
    version: 14,
    name: "names in payloads by their numbers",
    schemaDigest: "07a14a73ad336f74babd5917ef7fe10c",
    statements: [
      // The names in the schema of each revision, as JSON, by whose places its payloads are shortened, see
      // events/payload-names.ts. Never changed: payloads could not be read any more.
      `CREATE TABLE payload_names (
        action_id INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        names TEXT NOT NULL,
        PRIMARY KEY (action_id, revision),
        FOREIGN KEY (action_id, revision) REFERENCES action_revision (action_id, revision)
      ) STRICT, WITHOUT ROWID`,
      `INSERT INTO payload_names (action_id, revision, names)
        SELECT action_id, revision, (SELECT json_group_array(name) FROM (
            SELECT DISTINCT key AS name FROM json_tree(iif(json_valid(schemata), schemata, '{}'))
            WHERE path GLOB '*.properties' AND octet_length(key) BETWEEN 1 AND 64
              AND key NOT GLOB '*[^ !#-[^-~]*'
            LIMIT 1303))
        FROM action_revision`,
    ],
  },
  {
    version: 15,
    name: "pull subscriptions",
    schemaDigest: "47ecdbbc30c977ed11924a737731a313",
    statements: [
      // One of mode `pull` has an empty handler.
      "ALTER TABLE subscription ADD COLUMN mode TEXT NOT NULL DEFAULT 'push' CHECK (mode IN ('push', 'pull'))",
      // To the minute.
      "ALTER TABLE subscription ADD COLUMN last_claim_ms INTEGER",
      // Who took a delivery of a pull subscription; NULL for those that evreg sends. Without a CHECK, for which the engine
      // would read every attempt through.
      "ALTER TABLE lease ADD COLUMN consumer TEXT",
      "ALTER TABLE attempt ADD COLUMN consumer TEXT",
    ],
  },
  {
    version: 16,
    name: "subscriptions to actions by pattern",
    schemaDigest: "2023d5b503a594ada6cd5dda0c6f5dab",
    statements: [
      // The name of an action, `order.*` or `*`, in place of the one action's rowid. Names never change.
      "ALTER TABLE subscription ADD COLUMN action TEXT NOT NULL DEFAULT ''",
      `UPDATE subscription SET action = (SELECT a.action FROM action AS a WHERE a.rowid = action_id)`,
      // Whether the subscription, which was not deleted, gets the action's events now.
      "ALTER TABLE binding ADD COLUMN receives INTEGER NOT NULL DEFAULT 0 CHECK (receives IN (0, 1))",
      `INSERT INTO binding (action_id, subscription_id, receives)
        SELECT action_id, rowid, 1 FROM subscription WHERE deleted_ms IS NULL
        ON CONFLICT DO UPDATE SET receives = 1`,
      "DROP INDEX subscription_living",
      "DROP INDEX subscription_receiving",
      "ALTER TABLE subscription DROP COLUMN action_id",
      `CREATE UNIQUE INDEX subscription_living ON subscription (application, subscription, action)
        WHERE deleted_ms IS NULL`,
      "CREATE INDEX subscription_action ON subscription (action) WHERE deleted_ms IS NULL",
      "CREATE INDEX binding_receiving ON binding (action_id, subscription_id) WHERE receives = 1",
      "CREATE INDEX binding_subscription ON binding (subscription_id) WHERE receives = 1",

      "ALTER TABLE replay ADD COLUMN action TEXT NOT NULL DEFAULT ''",
      "UPDATE replay SET action = (SELECT a.action FROM action AS a WHERE a.rowid = action_id)",
      "ALTER TABLE replay DROP COLUMN action_id",
    ],
  },
  {
    version: 17,
    name: "who changed what",
    schemaDigest: "f858b7d99195675e802644ec09b007e4",
    statements: [
      // See history/audit.ts. Without the tokens' rows, which go with the tokens. `members`: JSON, NULL where none is told.
      `CREATE TABLE audit (
        rowid INTEGER PRIMARY KEY,
        changed_ms INTEGER NOT NULL,
        change TEXT NOT NULL,
        record_id INTEGER,
        name TEXT NOT NULL,
        by_name TEXT NOT NULL,
        token_id INTEGER,
        address TEXT,
        members TEXT
      ) STRICT`,
      "CREATE INDEX audit_changed ON audit (changed_ms)",
    ],
  },
  {
    version: 18,
    name: "order by key",
    schemaDigest: "294601951e3aa1330d3e26469269b417",
    statements: [
      // A JSON Pointer; NULL where it is not ordered by key.
      "ALTER TABLE subscription ADD COLUMN order_key TEXT",
      "CREATE INDEX subscription_keyed ON subscription (rowid) WHERE order_key IS NOT NULL AND deleted_ms IS NULL",
      // Of the event, as its subscription orders it or did; see queue/key-order.ts. One behind another of its key is of state 5.
      "ALTER TABLE delivery ADD COLUMN key INTEGER",
      `CREATE INDEX delivery_key ON delivery (subscription_id, key, state, priority, sequence)
        WHERE key IS NOT NULL AND state IN (0, 5)`,
      `CREATE INDEX delivery_key_failing ON delivery (subscription_id, failures)
        WHERE key IS NOT NULL AND due_ms IS NOT NULL AND failures > 0`,
    ],
  },
  {
    version: 19,
    name: "figures over time",
    schemaDigest: "b6fd508ffa0c81e0d2adca203db94d57",
    statements: [
      // See history/stats.ts. What happened in a minute, hour or day (`span`, in minutes), which begins `at` that minute since the
      // epoch. `kind`: 0 all, 1 an application, 2 an action, 3 a subscription, with its rowid as `id`. Histograms of times, see
      // domain/stats/histogram.ts. In the order of time, as all of a minute are written together, and removed.
      `CREATE TABLE stats (
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
      ) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    version: 20,
    name: "tokens of browsers",
    schemaDigest: "e97a2e97f212838876d1d8ef6cdbf58a",
    statements: [
      // Of a browser's token: the one that it was signed in with, and ends with, or 0 for the owner of the data folder.
      "ALTER TABLE token ADD COLUMN parent_id INTEGER",
    ],
  },
  {
    version: 21,
    name: "idempotency keys of applications, figures by ten seconds, removed events",
    schemaDigest: "95eaabd26e3d21e67187b006e67de83f",
    statements: [
      // The application in which the key was used; NULL where there is no key. An action can move to another application: its
      // keys stay where they were used, so that two of them never become one.
      "ALTER TABLE event ADD COLUMN idempotency_application TEXT",
      "DROP INDEX event_idempotency_key",
      `UPDATE event SET idempotency_application = (SELECT a.application FROM action AS a WHERE a.rowid = action_id)
        WHERE idempotency_key IS NOT NULL`,
      `CREATE UNIQUE INDEX event_idempotency_key ON event (idempotency_key, idempotency_application)
        WHERE idempotency_key IS NOT NULL`,

      // A replay may also send what waits for a retry. The list of a CHECK cannot be changed.
      "ALTER TABLE replay RENAME COLUMN selection TO selection_before",
      `ALTER TABLE replay ADD COLUMN selection TEXT NOT NULL DEFAULT 'failed'
        CHECK (selection IN ('failed', 'waiting', 'missed', 'all'))`,
      "UPDATE replay SET selection = selection_before",
      "ALTER TABLE replay DROP COLUMN selection_before",
      // What has failed so far, of one subscription, by its events.
      `CREATE INDEX delivery_waiting_event ON delivery (subscription_id, event_id)
        WHERE failures > 0 AND due_ms IS NOT NULL`,

      // The largest rowid and the latest time of the events that retention has removed; without a row, none. What earlier forms
      // removed is what is missing below the last rowid, and the time that of the event behind it. So long a jump behind a stored
      // event was made by a restore, see id-reservation.ts: retention would have removed that event first.
      `CREATE TABLE removed_events (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        last_event INTEGER NOT NULL,
        last_ms INTEGER NOT NULL
      ) STRICT`,
      `WITH stored (last) AS (SELECT max(rowid) FROM event),
          behind_all (event, ms) AS (
            SELECT seq, unixepoch() * 1000 FROM sqlite_sequence, stored
            WHERE name = 'event' AND seq > coalesce(last, 0) AND coalesce(seq - last, 0) < 600000000
          ),
          before_one (event, ms) AS (
            SELECT e.rowid - 1, e.timestamped_ms FROM event AS e
            WHERE e.rowid > 1 AND NOT EXISTS (SELECT 1 FROM event AS p WHERE p.rowid = e.rowid - 1)
              AND coalesce(e.rowid - (SELECT max(p.rowid) FROM event AS p WHERE p.rowid < e.rowid), 0) < 600000000
            ORDER BY e.rowid DESC LIMIT 1
          )
        INSERT INTO removed_events (one, last_event, last_ms)
          SELECT 1, event, ms FROM (SELECT * FROM behind_all UNION ALL SELECT * FROM before_one)
          ORDER BY event DESC LIMIT 1`,

      // See history/stats-counts.ts. What was counted in ten seconds (`at`, since the epoch) and is not in `stats` yet, of the
      // events of an action or, with a subscription, of its deliveries; without either it is 0. `measure` as in
      // domain/stats/tally.ts.
      `CREATE TABLE stats_open (
        at INTEGER NOT NULL,
        action_id INTEGER NOT NULL,
        subscription_id INTEGER NOT NULL,
        measure INTEGER NOT NULL,
        count INTEGER NOT NULL,
        last_error TEXT,
        PRIMARY KEY (at, action_id, subscription_id, measure)
      ) STRICT, WITHOUT ROWID`,
      // In `stats` a span of 0 is ten seconds, and its `at` counts these. Each minute of the last hour is in its first ones.
      `INSERT INTO stats (span, at, kind, id, application, published, refused, delivered, failed_attempts, failed, latency,
          attempts, last_error)
        SELECT 0, at * 6, kind, id, application, published, refused, delivered, failed_attempts, failed, latency, attempts,
          last_error
        FROM stats WHERE span = 1 AND at > (SELECT max(at) FROM stats WHERE span = 1) - 60`,
    ],
  },
  {
    version: 22,
    name: "one level of counts",
    schemaDigest: "55bfd565e35b8134907326c9303e1ce3",
    statements: [
      // How many events of an action (of all actions: 0) are in a closed block of rowids; see events/counts.ts. The blocks of an
      // action are together, so that their sum is quick.
      `CREATE TABLE block_count (
        action_id INTEGER NOT NULL,
        block INTEGER NOT NULL,
        events INTEGER NOT NULL CHECK (events >= 0),
        PRIMARY KEY (action_id, block)
      ) STRICT, WITHOUT ROWID`,
      `INSERT INTO block_count (action_id, block, events)
        SELECT action_id, block, events FROM event_count
        WHERE level = 0 AND (events > 0 OR block = (SELECT max(block) FROM event_count WHERE level = 0))`,
      "DROP TABLE event_count",
      "ALTER TABLE block_count RENAME TO event_count",
    ],
  },
];

export const LATEST_VERSION = MIGRATIONS.length;
