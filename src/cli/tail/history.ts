import type { Delivery, DeliveryQuery } from "../../domain/delivery.ts";
import type { DeliveryResult } from "../../domain/stream.ts";
import type { Evreg } from "../../evreg.ts";
import { note } from "../io/output.ts";
import { nextCommand } from "../target/next-command.ts";
import { resultIn, type ShownResult } from "./records.ts";

/** Deliveries of the past that are shown; a listing has all. */
const MAX_LISTED = 1_000;
const PAGE = 500;

/**
 * What the store tells of deliveries from before a stream's memory begins: the last attempt of each. Knows what it has shown, so
 * that no result comes twice.
 */
export class DeliveryHistory {
  readonly #evreg: Evreg;
  readonly #query: DeliveryQuery;
  readonly #application: string | undefined;
  /** The last attempt of each delivery that was shown. */
  readonly #shown = new Map<number, number>();

  constructor(evreg: Evreg, query: DeliveryQuery, application: string | undefined) {
    this.#evreg = evreg;
    this.#query = query;
    this.#application = application;
  }

  /** Reads those created from a time on, oldest first. */
  async since(from: string, to: string | undefined): Promise<readonly ShownResult[]> {
    const deliveries: Delivery[] = [];
    let after: number | undefined;
    let isWhole = false;
    while (deliveries.length <= MAX_LISTED && !isWhole) {
      const range = { from, ...(to === undefined || to <= from ? {} : { to }) };
      const page = { ...this.#query, ...range, limit: PAGE, ...(after === undefined ? {} : { after }) };
      const { data } = await this.#evreg.deliveries.list(page);
      deliveries.push(
        ...data.filter(({ application }) => application === (this.#application ?? application)),
      );
      after = data.at(-1)?.rowid;
      isWhole = data.length < PAGE;
    }
    if (deliveries.length > MAX_LISTED) {
      note(
        `Only the last ${MAX_LISTED.toLocaleString("en")} from before are shown; all: ${nextCommand(`deliveries --from ${from} --all`)}`,
      );
    }
    const shown = deliveries
      .slice(0, MAX_LISTED)
      .toReversed()
      .flatMap((delivery) => resultIn(delivery) ?? []);
    for (const { rowid, attempt } of shown) this.#shown.set(rowid, attempt);
    return shown;
  }

  hasTold({ rowid, attempt }: DeliveryResult): boolean {
    return (this.#shown.get(rowid) ?? -1) >= attempt;
  }
}
