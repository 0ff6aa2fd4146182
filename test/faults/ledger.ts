import { createHash } from "node:crypto";
import { join } from "node:path";
import { expect } from "vitest";
import { ATTEMPTS } from "../../src/store/sql/queue/deliveries.ts";
import { fileSql } from "../support/file-sql.ts";
import type { Answer, Receiver, ReceivedRequest } from "../support/receiver.ts";

/** Follows `FROM`: the attempts of all deliveries. */
export const ALL_ATTEMPTS = `(WITH chosen (id) AS (SELECT rowid FROM delivery) ${ATTEMPTS})`;

/** What the ledger comes to. All but the first five must be what the fault under test allows. */
export interface Balance {
  /** Events whose publishing was begun. */
  readonly sent: number;
  /** Of those: answered 2xx. */
  readonly acknowledged: number;
  /** Answered with anything else. */
  readonly refused: number;
  /** Never answered: whether they are stored is open, and either is right. */
  readonly unanswered: number;
  readonly stored: number;
  /** Acknowledged, and not stored under the rowid that was answered with the payload that was sent. */
  readonly lost: number;
  /** Acknowledged, and no handler's 2xx is on record and received. */
  readonly undelivered: number;
  /** Stored and never sent, or stored twice. */
  readonly invented: number;
  /** Refused and stored all the same. */
  readonly refusedButStored: number;
  /** Requests to the handler beyond the first, for the same event. */
  readonly repeated: number;
  /** Of those: after a 2xx that the handler had answered. */
  readonly duplicates: number;
  /** Requests that came under another event id, or with other bytes, than the first for the same event. */
  readonly altered: number;
  /** Requests that no attempt on record tells of, or came twice under one attempt, or were answered otherwise than recorded. */
  readonly unrecorded: number;
  /** Attempts with an HTTP status on record that the handler never saw. */
  readonly unseen: number;
  readonly integrity: string;
}

interface Received {
  readonly n: number;
  readonly eventId: number;
  readonly attempt: number;
  readonly hash: string;
  /** `undefined`: never answered. */
  readonly status: number | undefined;
}

/** All that the data file says, in one question: each takes a process of its own. */
const KEPT = `SELECT
  (SELECT json_group_array(json_object('id', rowid, 'n', CAST(payload AS TEXT) ->> 'n')) FROM event) AS stored,
  (SELECT json_group_array(json_object('key', d.event_id || '_' || a.attempt, 'status', a.status_code))
    FROM ${ALL_ATTEMPTS} AS a CROSS JOIN delivery AS d ON d.rowid = a.delivery_id) AS attempts,
  (SELECT json_group_array(event_id) FROM delivery WHERE state = 2) AS delivered,
  (SELECT integrity_check FROM pragma_integrity_check) AS integrity`;
const TAIL = /,"delivery_attempt":\d+\}$/;

/**
 * What was sent, answered and received while something went wrong, reconciled in the end with what the data file says.
 * Events are told apart by `n` in their payload.
 */
export class Ledger {
  #sent = 0;
  readonly #acknowledged = new Map<number, number>();
  readonly #refused = new Map<number, number>();
  readonly #received: Received[] = [];
  readonly #requests = new Map<number, number>();

  /** The number of the next event. */
  next(): number {
    this.#sent += 1;
    return this.#sent;
  }

  answered(n: number, status: number, rowid: number | undefined): void {
    if (status >= 200 && status <= 299 && rowid !== undefined) this.#acknowledged.set(n, rowid);
    else this.#refused.set(n, status);
  }

  get acknowledged(): number {
    return this.#acknowledged.size;
  }

  /** How many requests were refused with this status. */
  refusedWith(status: number): number {
    return [...this.#refused.values()].filter((given) => given === status).length;
  }

  /** Notes each request to the receiver, and has it answered as `answer` says; `count` is how many came for the event. */
  watch(receiver: Receiver, answer: (count: number, request: ReceivedRequest) => Answer = () => ({})): void {
    receiver.answer = (request) => {
      const text = request.body.toString();
      const { payload } = JSON.parse(text) as { payload: { n: number } };
      const [eventId = "", attempt = ""] = (request.headers["x-evreg-delivery"] ?? "").split("_");
      const hash = createHash("sha256").update(text.replace(TAIL, "")).digest("hex");
      const count = (this.#requests.get(payload.n) ?? 0) + 1;
      this.#requests.set(payload.n, count);
      const given = answer(count, request);
      const status = typeof given === "object" && !("raw" in given) ? (given.status ?? 200) : undefined;
      this.#received.push({ n: payload.n, eventId: Number(eventId), attempt: Number(attempt), hash, status });
      return given;
    };
  }

  /** To be called when no process has the folder any more. */
  balance(folder: string): Balance {
    const [kept] = fileSql(join(folder, "evreg.db"), KEPT);
    const rows = <T>(name: string): readonly T[] => JSON.parse(String(kept?.[name])) as readonly T[];
    const stored = rows<{ id: number; n: number | null }>("stored");
    const attempts = rows<{ key: string; status: number | null }>("attempts");
    const delivered = rows<number>("delivered");

    const rowidOf = new Map(stored.map(({ id, n }) => [n, id]));
    const deliveredIds = new Set(delivered);
    const seenOk = new Set(this.#received.filter(isOk).map(({ eventId }) => eventId));
    const seen = new Map(this.#received.map((one) => [`${one.eventId}_${one.attempt}`, one]));
    const recorded = new Map(attempts.map(({ key, status }) => [key, status]));
    const acknowledged = [...this.#acknowledged];
    return {
      sent: this.#sent,
      acknowledged: acknowledged.length,
      refused: this.#refused.size,
      unanswered: this.#sent - acknowledged.length - this.#refused.size,
      stored: stored.length,
      lost: acknowledged.filter(([n, rowid]) => rowidOf.get(n) !== rowid).length,
      undelivered: acknowledged.filter(([, rowid]) => !deliveredIds.has(rowid) || !seenOk.has(rowid)).length,
      invented:
        stored.length - rowidOf.size + stored.filter(({ n }) => n === null || n < 1 || n > this.#sent).length,
      refusedButStored: [...this.#refused.keys()].filter((n) => rowidOf.has(n)).length,
      repeated: this.#received.length - this.#requests.size,
      ...this.#repeats(),
      unrecorded:
        this.#received.length -
        seen.size +
        [...seen].filter(([key, { n, eventId, status }]) => {
          const noted = recorded.get(key);
          // An answer that a crash kept from arriving is on record as none.
          return rowidOf.get(n) !== eventId || noted === undefined || (noted !== null && noted !== status);
        }).length,
      unseen: attempts.filter(({ key, status }) => status !== null && !seen.has(key)).length,
      integrity: String(kept?.["integrity"]),
    };
  }

  /** Holds the balance to what every fault has to leave behind; `expected` overrides or adds. */
  expectWhole(folder: string, expected: Partial<Balance> = {}): Balance {
    const balance = this.balance(folder);
    expect(balance).toMatchObject({
      lost: 0,
      undelivered: 0,
      invented: 0,
      altered: 0,
      unrecorded: 0,
      unseen: 0,
      integrity: "ok",
      ...expected,
    });
    return balance;
  }

  #repeats(): Pick<Balance, "duplicates" | "altered"> {
    const firsts = new Map<number, Received>();
    const ended = new Set<number>();
    let duplicates = 0;
    let altered = 0;
    for (const one of this.#received) {
      const first = firsts.get(one.n);
      if (first === undefined) firsts.set(one.n, one);
      else if (first.eventId !== one.eventId || first.hash !== one.hash) altered += 1;
      if (ended.has(one.n)) duplicates += 1;
      if (isOk(one)) ended.add(one.n);
    }
    return { duplicates, altered };
  }
}

function isOk({ status }: Received): boolean {
  return status !== undefined && status >= 200 && status <= 299;
}
