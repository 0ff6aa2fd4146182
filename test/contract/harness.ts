import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { NewAction, Schemata } from "../../src/domain/action.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { EvregErrorCode } from "../../src/domain/error.ts";
import type { Event, NewEvent } from "../../src/domain/event.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../src/domain/subscription.ts";
import type { Scope } from "../../src/domain/token.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import type { Store } from "../../src/store/store.ts";
import type { ManualClock } from "../support/manual-clock.ts";

/** One empty evreg, with nothing sending its deliveries. */
export interface EvregUnderTest {
  /** The port with every right. */
  readonly evreg: Evreg;
  /** The port of somebody who holds these scopes. */
  as(scopes: readonly Scope[]): Promise<Evreg>;
  /** What stands behind, for the steps that only the delivery engine takes. */
  readonly store: Store;
  readonly clock: ManualClock;
  close(): Promise<void>;
}

export type OpenEvreg = () => Promise<EvregUnderTest>;

/** The evreg of the running test: opened anew before each, closed after it. */
export function useEvreg(open: OpenEvreg): EvregUnderTest {
  const slot: Slot = { current: undefined };
  beforeEach(() => fill(slot, open));
  afterEach(() => empty(slot));
  return frontOf(slot);
}

/** One evreg for all tests of a block: for those that change nothing, or nothing the others look at. */
export function useSharedEvreg(
  open: OpenEvreg,
  prepare: (under: EvregUnderTest) => Promise<unknown> = () => Promise.resolve(),
): EvregUnderTest {
  const slot: Slot = { current: undefined };
  beforeAll(async () => {
    await fill(slot, open);
    await prepare(slot.current!);
  });
  afterAll(() => empty(slot));
  return frontOf(slot);
}

interface Slot {
  current: EvregUnderTest | undefined;
}

async function fill(slot: Slot, open: OpenEvreg): Promise<void> {
  slot.current = await open();
}

async function empty(slot: Slot): Promise<void> {
  await slot.current?.close();
  slot.current = undefined;
}

function frontOf(slot: Slot): EvregUnderTest {
  return {
    get evreg() {
      return slot.current!.evreg;
    },
    get store() {
      return slot.current!.store;
    },
    get clock() {
      return slot.current!.clock;
    },
    as: (scopes) => slot.current!.as(scopes),
    close: () => slot.current!.close(),
  };
}

/** The refusal a call must end in. */
export async function refusal(call: Promise<unknown>, code: EvregErrorCode): Promise<EvregError> {
  const error: unknown = await call.then(
    (answer) => new Error(`expected ${code}, was answered ${JSON.stringify(answer)}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof EvregError)) throw error;
  expect({ code: error.code, message: error.message }).toEqual({ code, message: error.message });
  expect(error.message).not.toBe("");
  return error;
}

export const USER_SCHEMA: Schemata = {
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  properties: {
    email: { type: "string", format: "email" },
    name: { type: "string", minLength: 1 },
    address: { type: "object", properties: { zip: { type: "string" } } },
    items: { type: "array", items: { type: "object", properties: { sku: { type: "string" } } } },
  },
  required: ["email"],
};

let names = 0;

/** An action's name that no other test has, for those that share an evreg. */
export function freshName(): string {
  names += 1;
  return `user.created${names}`;
}

/** A schema that any object conforms to. */
export const ANY_OBJECT: Schemata = { type: "object" };

export function newAction(input: Partial<NewAction> = {}): NewAction {
  return { action: "user.created", application: "crm", schemata: USER_SCHEMA, ...input };
}

export function newEvent(payload: unknown = { email: "ada@example.com" }, action = "user.created"): NewEvent {
  return { action, payload: RawJson.fromValue(payload) };
}

/** An event whose payload is exactly this text. */
export function rawEvent(text: string, action = "user.created"): NewEvent {
  return { action, payload: RawJson.fromText(text) };
}

export async function publish(evreg: Evreg, event: NewEvent = newEvent()): Promise<Event> {
  return (await evreg.events.publish(event)).data;
}

/** How many events of these actions there are. */
export async function totalOf({ events }: Evreg, ...actions: readonly string[]): Promise<number> {
  const lists = await Promise.all(actions.map((action) => events.list({ action, limit: 1 })));
  return lists.reduce((sum, { meta }) => sum + meta.total, 0);
}

export function newSubscription(input: Partial<NewSubscription> = {}): NewSubscription {
  return {
    application: "billing",
    subscription: "invoices",
    action: "user.created",
    handler: "https://hooks.example.com/evreg",
    ...input,
  };
}

export async function subscribe(
  evreg: Evreg,
  input: Partial<NewSubscription> = {},
): Promise<SubscriptionWithSecret> {
  return (await evreg.subscriptions.create(newSubscription(input))).data;
}
