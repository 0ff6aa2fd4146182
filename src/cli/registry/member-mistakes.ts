import { asEvregError, invalidField, type EvregError } from "../../domain/error.ts";
import { checkExtraHeaders } from "../../domain/extra-headers.ts";
import { checkHandlerForm } from "../../domain/handler-url.ts";
import { checkActionName, checkLabel } from "../../domain/names.ts";
import { compileSchema, type Validator } from "../../schema/compile.ts";
import { pathNamed } from "../../schema/field-path.ts";
import type { Declarable, Values } from "./members.ts";

const NAMES: Readonly<Record<string, (field: string, value: string) => unknown>> = {
  action: checkActionName,
  successor: checkActionName,
  application: checkLabel,
  subscription: checkLabel,
  handler: checkHandlerForm,
};

/**
 * Every member that the service would not take, in the order in which it checks a request; it would tell of the first alone.
 * @param values names come out trimmed
 * @param meant members that stand there by another name, which is told already; they are not missed
 */
export function memberMistakes(
  kind: Declarable,
  values: Record<string, unknown>,
  meant: ReadonlySet<string | undefined>,
): readonly EvregError[] {
  const wrong = new Map<string, EvregError>();
  const trying = (member: string, check: () => void): void => {
    try {
      if (!wrong.has(member)) check();
    } catch (thrown) {
      wrong.set(member, asEvregError(thrown));
    }
  };
  for (const [member, check] of Object.entries(NAMES)) {
    const value = values[member];
    if (typeof value !== "string") continue;
    trying(member, () => {
      const checked = check(member, value);
      if (typeof checked === "string") values[member] = checked;
    });
  }
  for (const error of [...missing(kind, values, meant), ...misshapen(kind, values)]) {
    const [member] = pathNamed(String(error.details["field"]));
    trying(String(member), () => {
      throw error;
    });
  }
  const { headers, ordered, on_exhausted: exhausted } = values as Values;
  trying("headers", () => {
    if ((headers ?? null) !== null) checkExtraHeaders("headers", headers as Record<string, string>);
  });
  trying("on_exhausted", () => {
    if (ordered === true || (exhausted ?? null) === null) return;
    throw invalidField("on_exhausted", "is for subscriptions that are ordered only");
  });
  return [...wrong.values()];
}

function missing(
  { body }: Declarable,
  values: Values,
  meant: ReadonlySet<string | undefined>,
): readonly EvregError[] {
  const required = body["required"] as readonly string[];
  return required
    .filter((member) => values[member] === undefined && !meant.has(member))
    .map((member) => invalidField(member, "is required"));
}

/** A validator stops at the first mistake, so it is asked again without that member. */
function misshapen(kind: Declarable, values: Values): readonly EvregError[] {
  const found: EvregError[] = [];
  const left: Record<string, unknown> = { ...values };
  for (;;) {
    const fault = validatorOf(kind).validate(left);
    if (fault === undefined) return found;
    found.push(invalidField(fault.field, fault.message));
    const [member] = pathNamed(fault.field);
    if (member === undefined || !(member in left)) return found;
    delete left[member];
  }
}

const validators = new Map<Declarable, Validator>();

/** Of the members that are there; which must be is not for it to say. */
function validatorOf(kind: Declarable): Validator {
  let validator = validators.get(kind);
  if (validator === undefined) {
    validators.set(kind, (validator = compileSchema({ ...kind.body, required: [] })));
  }
  return validator;
}
