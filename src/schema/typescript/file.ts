import type { Action } from "../../domain/action.ts";
import { declarationsFor } from "./declarations.ts";
import { stringLiteral } from "./literals.ts";

type TypedAction = Pick<Action, "action" | "application" | "revision" | "schemata">;

/** Names of the types below, which no action's type may have. */
const OWN_NAMES = ["EventPayloads", "ActionName", "Delivery", "DeliveryOf"];

/** The actions as a file of TypeScript: a type for each payload, and one for the bodies of all deliveries. */
export function typesFile(actions: readonly TypedAction[]): string {
  const sorted = actions.toSorted((a, b) => (a.action < b.action ? -1 : 1));
  const { source, names } = declarationsFor(
    sorted.map(({ action, application, revision, schemata }) => ({
      name: action,
      schemata,
      about: [`The payload of ${action} (${application}, revision ${revision}).`],
    })),
    OWN_NAMES,
  );
  const payloads = sorted.map(({ action }, index) => `  ${stringLiteral(action)}: ${names[index]};\n`);
  return `${HEAD}
/** The payload of each action. */
export interface EventPayloads {
${payloads.join("")}}
${DELIVERY}${source === "" ? "" : "\n"}${source}`;
}

const HEAD = `// Made by \`evreg actions types\` from the schemas of the actions. Make it anew rather than edit it.
/* eslint-disable */
`;

const DELIVERY = `
export type ActionName = keyof EventPayloads;

/** What a handler receives for one action. */
export interface DeliveryOf<Name extends ActionName> {
  /** The same in every attempt. */
  event_id: string;
  action: Name;
  payload: EventPayloads[Name];
  /** ISO 8601, when the event was published. */
  timestamp: string;
  /** 1 for the first attempt. */
  delivery_attempt: number;
}

/** What a handler receives; \`action\` tells which payload it is. */
export type Delivery = { [Name in ActionName]: DeliveryOf<Name> }[ActionName];
`;
