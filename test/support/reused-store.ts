import { Client } from "pg";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import type { Store } from "../../src/store/store.ts";
import { testOwner } from "../store/owner.ts";
import type { Cluster } from "./postgres.ts";

/** Tables whose rows belong to the open store, and not to what a test does with it. */
const KEPT = "'turn', 'node', 'writer', 'shard', 'data_identity'";

/**
 * Remembers what an empty store has, and makes a function that brings it back. Rows are deleted one by one: TRUNCATE would
 * have the database plan every statement anew.
 */
const REMEMBER_EMPTY = `
CREATE SCHEMA empty;
CREATE TABLE empty.numbers AS
  SELECT format('evreg.%I', sequencename)::regclass AS sequence, last_value FROM pg_sequences WHERE schemaname = 'evreg';
DO $do$ DECLARE name text; steps text := ''; hasRows boolean; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'evreg' AND tablename NOT IN (${KEPT}) LOOP
    steps := steps || format('DELETE FROM evreg.%I; ', name);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM evreg.%I)', name) INTO hasRows;
    CONTINUE WHEN NOT hasRows;
    EXECUTE format('CREATE TABLE empty.%I AS TABLE evreg.%I', name, name);
    steps := steps || format('INSERT INTO evreg.%I OVERRIDING SYSTEM VALUE SELECT * FROM empty.%I; ', name, name);
  END LOOP;
  EXECUTE format('CREATE FUNCTION empty.restore() RETURNS void LANGUAGE plpgsql SET session_replication_role = replica AS %L',
    'BEGIN ' || steps || 'PERFORM setval(sequence, coalesce(last_value, 1), last_value IS NOT NULL) FROM empty.numbers; END');
END $do$`;

/**
 * A store on PostgreSQL for one test after the other. To open one, with its connections and all statements that are planned
 * on them, takes three times as long as what most tests do with it.
 */
export class ReusedStore {
  readonly #cluster: Cluster;
  #store: Store | undefined;
  #client: Client | undefined;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Answers the store, which is empty: its `close` only empties it for the next test. */
  async open(): Promise<Store> {
    this.#store ??= await this.#make();
    return { ...this.#store, close: () => this.#empty() };
  }

  async #make(): Promise<Store> {
    const url = this.#cluster.url(await this.#cluster.emptyStore());
    // The services of tests are called so.
    const owner = { ...testOwner(), instance: "test" };
    const store = await openPostgresStore({ url, owner });
    this.#client = new Client({ connectionString: url });
    await this.#client.connect();
    await this.#client.query(REMEMBER_EMPTY);
    return store;
  }

  async #empty(): Promise<void> {
    // Writes take turns, so whatever the test did not wait for is done once this write is.
    await this.#store?.stats.removeExpired(0);
    await this.#client?.query("SELECT empty.restore()");
  }

  async end(): Promise<void> {
    await this.#client?.end();
    await this.#store?.close();
  }
}
