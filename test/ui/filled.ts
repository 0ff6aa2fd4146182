import type { NewSubscription } from "../../src/domain/subscription.ts";
import type { Evreg } from "../../src/evreg.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { deliveriesOf, publish, subscribe as subscribeAt } from "../support/records.ts";
import { words } from "../support/words.ts";

/** Of the application mail. */
export const subscribe = (evreg: Evreg, name: string, more: Partial<NewSubscription> = {}) =>
  subscribeAt(evreg, name, { application: "mail", ...more });

/** Waits until so many deliveries have failed for good, and no more. */
export const failed = (evreg: Evreg, count: number) => deliveriesOf(evreg, { status: "failed" }, count);

/** Markup that would run, run away with a style, or lead elsewhere, were it ever taken for more than text. */
const MARKUP = `<script>alert(1)</script><img src=x onerror="alert(2)"><b class=hostile>`;
/** Turns what follows it from right to left, and colours a terminal red. */
const UNPRINTABLE = "\u202Egpj.exe\u001B[31mred";
/** A label may hold no invisible characters, but all scripts, those from right to left too. */
const LABEL = `<img src=x onerror=alert(3)> שלום עולם ${"long ".repeat(16)}end`;
const LONG_ACTION = `a.${"very-long-name.".repeat(8)}v1`;

const HOSTILE = { text: MARKUP, [MARKUP]: UNPRINTABLE, many: "x".repeat(400), big: 1 };

/** The addresses of all that the page can show of what `fill` makes. */
export const ADDRESSES = words(`
  #/ #/overview?range=5m #/audit #/doctor #/none
  #/events #/events/1 #/events?action=none-has-this
  #/deliveries #/deliveries/1 #/deliveries?status=failed
  #/subscriptions #/subscriptions/1 #/subscriptions/1/edit #/subscriptions/1/test #/subscriptions/1/replay
  #/subscriptions/1/rotate #/subscriptions/2 #/subscriptions/new
  #/actions #/actions/order.created #/actions/order.created/revisions?from=1&to=2 #/actions/order.created/check
  #/actions/order.created/publish #/actions/order.created/settings
  #/actions/${LONG_ACTION} #/actions?create=one
  #/replays #/replays/1 #/tokens #/tokens/new
  #/api #/api/createSubscription #/api?find=none-has-this
`);

/** A handler that answers each delivery with 422 and hostile text. */
export async function hostileReceiver(): Promise<Receiver> {
  const receiver = await startReceiver();
  receiver.answer = () => ({ status: 422, headers: { "X-Why": MARKUP }, body: `${MARKUP}${UNPRINTABLE}` });
  return receiver;
}

/**
 * Something of each kind, named and filled with what must be shown as text.
 * @param handler refuses all, so that two deliveries have failed, and others wait
 */
export async function fill(evreg: Evreg, handler: string): Promise<void> {
  const property = { type: "string", description: MARKUP };
  const schemata = { type: "object", title: MARKUP, properties: { text: property, big: { type: "number" } } };
  await evreg.actions.create({ action: "order.created", application: LABEL, schemata });
  const longer = { ...schemata, properties: { ...schemata.properties, note: property } };
  await evreg.actions.update("order.created", { schemata: longer });
  await evreg.actions.create({ action: LONG_ACTION, application: LABEL, schemata: { type: "object" } });
  const base = { application: LABEL, handler };
  const first = await subscribe(evreg, LABEL, {
    ...base,
    max_retries: 0,
    headers: { "X-Markup": MARKUP },
    filter: { properties: { text: { const: MARKUP } } },
  });
  await subscribe(evreg, "stock", { ...base, ordered: true, max_retries: 9 });
  const payload = JSON.stringify(HOSTILE).replace(/1}$/, "12345678901234567890}");
  for (let count = 0; count < 2; count += 1) await publish(evreg, "order.created", payload);
  await failed(evreg, 2);
  await evreg.replays.start(first.rowid, { status: "failed", from: new Date(0).toISOString() });
  await evreg.tokens.create({ name: LABEL, scopes: ["read", `publish:${LABEL}`] });
}
