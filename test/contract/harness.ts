import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { NewAction, Schemata } from "../../src/domain/action.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { EvregErrorCode } from "../../src/domain/error.ts";
import type { Event, NewEvent } from "../../src/domain/event.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../src/domain/subscription.ts";
import type { Scope } from "../../src/domain/token.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import type { AttemptEnding, AttemptResult, Claim } from "../../src/store/queue.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import type { ManualClock } from "../support/manual-clock.ts";
import { resultOf } from "./store/fixture.ts";

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

/** Makes what is there when a test begins. */
export type Prepare = (under: EvregUnderTest) => Promise<unknown>;

/** The evreg of the running test: opened anew before each, closed after it. */
export function useEvreg(open: OpenEvreg, prepare?: Prepare): EvregUnderTest {
  return openedBy(beforeEach, afterEach, open, prepare);
}

/** One evreg for all tests of a block: for those that change nothing, or nothing the others look at. */
export function useSharedEvreg(open: OpenEvreg, prepare?: Prepare): EvregUnderTest {
  return openedBy(beforeAll, afterAll, open, prepare);
}

function openedBy(
  before: (open: () => Promise<void>) => void,
  after: (close: () => Promise<void>) => void,
  open: OpenEvreg,
  prepare?: Prepare,
): EvregUnderTest {
  let current: EvregUnderTest | undefined;
  before(async () => {
    current = await open();
    await prepare?.(current);
  });
  after(async () => {
    await current?.close();
    current = undefined;
  });
  return {
    get evreg() {
      return current!.evreg;
    },
    get store() {
      return current!.store;
    },
    get clock() {
      return current!.clock;
    },
    as: (scopes) => current!.as(scopes),
    close: () => current!.close(),
  };
}

/** Takes what is due, as the engine does. */
export async function claimDue({ store, clock }: EvregUnderTest, limit = 100): Promise<readonly Claim[]> {
  const request = claimRequest({ nowMs: clock.now(), limit, leaseMs: 60_000 });
  return (await store.queue.claim(request)).claims;
}

/** Ends an attempt now, as the engine does. */
export async function finishNow(
  { store, clock }: EvregUnderTest,
  claim: Claim,
  ending: AttemptEnding,
  result: Partial<AttemptResult> = {},
): Promise<void> {
  const nowMs = clock.now();
  const finished = resultOf(claim, ending, { startedAtMs: nowMs, ...result });
  expect(await store.queue.finish([finished], nowMs)).toMatchObject([{ kind: "stored" }]);
}

/** Takes what is due, and ends all of it alike. */
export async function endDue(
  under: EvregUnderTest,
  ending: AttemptEnding,
  result: Partial<AttemptResult> = {},
): Promise<void> {
  for (const claim of await claimDue(under)) await finishNow(under, claim, ending, result);
}

/** The refusal a call must end in, with these details among others. */
export async function refusal(
  call: Promise<unknown>,
  code: EvregErrorCode,
  details: object = {},
): Promise<EvregError> {
  const error: unknown = await call.then(
    (answer) => new Error(`expected ${code}, was answered ${JSON.stringify(answer)}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof EvregError)) throw error;
  expect({ code: error.code, message: error.message }).toEqual({ code, message: error.message });
  expect(error.message).not.toBe("");
  expect(error.details).toMatchObject(details);
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

/** Makes actions that any object may be published to. */
export async function makeAny({ evreg }: Pick<EvregUnderTest, "evreg">, ...actions: string[]): Promise<void> {
  for (const action of actions) await evreg.actions.create(newAction({ action, schemata: ANY_OBJECT }));
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
