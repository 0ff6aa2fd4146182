import { checkActionName, checkActionPattern, checkLabel } from "../../domain/names.ts";
import { nearest } from "../../domain/words/nearest.ts";
import { invalidField } from "../../domain/error.ts";
import { checkHandlerForm } from "../../domain/handler-url.ts";
import type { InputSchema } from "../../domain/request.ts";
import { defaultRetries, type RetryDefaults } from "../../domain/retry.ts";
import { checkSettings } from "../../domain/subscription-settings.ts";
import { checkForMode } from "../../domain/subscription.ts";
import { ACTION as ACTION_RECORD } from "../../model/action.ts";
import { type Field, type Fields, bodyOf } from "../../model/field.ts";
import { SUBSCRIPTION as SUBSCRIPTION_RECORD } from "../../model/subscription.ts";
import { memoize } from "../../schema/memoize.ts";
import { compileSchema } from "../../schema/validate/compile.ts";

export type Values = Readonly<Record<string, unknown>>;

/**
 * The value of a member that a file leaves out, from those it gives and the server's settings; `undefined` where an existing
 * value stays, and the service chooses that of a new record.
 */
type Default = (declared: Values, retries: RetryDefaults | undefined) => unknown;

/** What registry files can declare of one noun. */
export interface DeclaredKind {
  readonly noun: "action" | "subscription";
  /** Its list in a file. */
  readonly list: "actions" | "subscriptions";
  /** The members that identify a record. They never change. */
  readonly identity: readonly string[];
  /** The other members, in the order an export writes them. */
  readonly members: ReadonlyMap<string, Default>;
  /** Members that name a file with the value of another member. */
  readonly references: readonly string[];
  readonly fields: Fields;
  /** The schema of a record, references resolved. */
  readonly body: InputSchema;
}

const defaultTo =
  (value: unknown): Default =>
  () =>
    value;

/**
 * What files can declare of a record: all that a new one may have. What a file leaves out is as in a new record.
 * @param defaults the members of which that is not so
 */
function declarable(
  identity: readonly string[],
  fields: Fields,
  defaults: Readonly<Record<string, Default>>,
): Pick<DeclaredKind, "identity" | "members" | "references" | "fields" | "body"> {
  const members = new Map<string, Default>();
  const references: string[] = [];
  const declared: Record<string, Field> = {};
  for (const [name, field] of Object.entries(fields)) {
    const { new: schema = field.isDeclared && field.change, none } = field;
    if (schema === undefined) continue;
    declared[name] = { ...field, new: schema };
    if (identity.includes(name)) continue;
    if (schema["writeOnly"] === true) references.push(`${name}_file`);
    else members.set(name, defaults[name] ?? defaultTo(none === undefined ? schema["default"] : none));
  }
  return { identity, members, references, fields, body: bodyOf(declared, "new", { title: "Declared" }) };
}

// A deprecated or retired action stays so, unless the file says otherwise.
export const ACTION: DeclaredKind = {
  noun: "action",
  list: "actions",
  ...declarable(["action"], ACTION_RECORD, {}),
};

export const SUBSCRIPTION: DeclaredKind = {
  noun: "subscription",
  list: "subscriptions",
  ...declarable(["application", "subscription", "action"], SUBSCRIPTION_RECORD, {
    handler: ({ mode }) => (mode === "pull" ? null : undefined),
    max_retries: defaultRetries,
    // A pause by a person or by the handler stays, unless the file says otherwise.
    active: () => undefined,
    on_exhausted: ({ ordered = false }) => (ordered === false ? null : "block"),
  }),
};

/** The values in a new record of the members that stay as they are unless a file says them. */
export const NEW_RECORD_DEFAULTS: Values = {
  active: true,
  deprecated: false,
  retired: false,
  successor: null,
};

/** The names a file may give a record of the noun. */
export function memberNames({ identity, members, references }: DeclaredKind): readonly string[] {
  return [...identity, ...members.keys(), ...references];
}

export function unknownMember(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  const hint = meant === undefined ? `use one of ${known.join(", ")}` : `did you mean ${meant}?`;
  return `${name} is unknown here; ${hint}`;
}

const NAMES: Readonly<Record<string, (field: string, value: string) => unknown>> = {
  successor: checkActionName,
  application: checkLabel,
  subscription: checkLabel,
  handler: checkHandlerForm,
};

/**
 * Checks the members of a record by the rules of the service.
 * @param values names come out trimmed
 * @throws EvregError `invalid` for the first mistake
 */
export function checkMembers(kind: DeclaredKind, values: Record<string, unknown>): void {
  const checkAction = kind === SUBSCRIPTION ? checkActionPattern : checkActionName;
  for (const [member, check] of Object.entries({ action: checkAction, ...NAMES })) {
    const value = values[member];
    const checked = typeof value === "string" ? check(member, value) : undefined;
    if (typeof checked === "string") values[member] = checked;
  }
  const fault = validatorOf(kind).validate(values);
  if (fault !== undefined) throw invalidField(fault.field, fault.message);
  if (kind !== SUBSCRIPTION) return;
  const mode = values["mode"] === "pull" ? "pull" : "push";
  checkSettings(values);
  if (mode === "push" && values["handler"] === undefined) throw invalidField("handler", "is required");
  checkForMode(mode, values);
}

const validatorOf = memoize(({ body }: DeclaredKind) => compileSchema(body));
