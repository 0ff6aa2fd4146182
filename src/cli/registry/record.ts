import { checkBearerToken } from "../../domain/bearer-token.ts";
import { EvregError, invalidField } from "../../domain/error.ts";
import { checkExtraHeaders } from "../../domain/extra-headers.ts";
import { checkHandlerForm } from "../../domain/handler-url.ts";
import { checkActionName, checkLabel } from "../../domain/names.ts";
import { compileSchema, type Validator } from "../../schema/compile.ts";
import { pathNamed, type FieldPath } from "../../schema/field-path.ts";
import { readRegularFile } from "../input.ts";
import { parseDocuments, type Problem } from "./document.ts";
import { referredFile, type RegistryFile } from "./files.ts";
import { memberNames, unknownMember, type Declarable, type Values } from "./members.ts";

/** A record as a file declares it. */
export interface Declared {
  readonly kind: Declarable;
  /** The members that were given, as the service will have them. */
  readonly values: Values;
  /** What `bearer_token_file` holds. It is sent, and never shown. */
  readonly bearerToken?: string;
  /** Where a part of it stands: `shop.yaml:12`. */
  readonly place: (path: FieldPath) => string;
}

/** Where the files lie that hold what a registry file must not. */
export interface References {
  /** Of `bearer_token_file`; unless told, they lie as schemas do. */
  readonly bearerTokenFolder?: string;
}

interface Raw {
  readonly kind: Declarable;
  readonly value: unknown;
  readonly place: (path: FieldPath) => string;
  readonly file: RegistryFile;
}

/**
 * Holds one record to what the service takes, so that a mistake is found before anything is changed. What only the service
 * knows, such as the networks that handlers may be in, is left to it.
 */
export async function checkRecord(
  raw: Raw,
  references: References,
): Promise<{ record?: Declared; problems: Problem[] }> {
  const { kind, value, place, file } = raw;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return {
      problems: [{ place: place([]), message: `must be a mapping, which declares one ${kind.noun}` }],
    };
  }
  const problems = strangers(raw, value);
  if (problems.length > 0) return { problems };
  const values: Record<string, unknown> = { ...value };
  let placeOf = place;
  try {
    if (typeof values["schemata"] === "string") {
      const schema = await schemaIn(values["schemata"], file);
      values["schemata"] = schema.value;
      // Places inside the schema are those of its own file.
      placeOf = (path) => (path[0] === "schemata" ? schema.place(path.slice(1)) : place(path));
    }
    const bearerToken = await bearerTokenOf(values, file, references);
    checkMembers(kind, values);
    const record = { kind, values, place: placeOf };
    return { record: bearerToken === undefined ? record : { ...record, bearerToken }, problems };
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    const field = error.details["field"];
    const path = typeof field === "string" ? pathNamed(field) : [];
    const known = error instanceof PlacedError ? error.place : undefined;
    return { problems: [{ place: known ?? placeOf(path), message: error.message }] };
  }
}

/** Where its own place is another file than that of the record. */
class PlacedError extends EvregError {
  readonly place: string;

  constructor(place: string, message: string) {
    super("invalid", message);
    this.place = place;
  }
}

function strangers({ kind, place }: Raw, value: object): Problem[] {
  const known = memberNames(kind);
  return Object.keys(value)
    .filter((name) => !known.includes(name))
    .map((name) => ({
      place: place([name]),
      message:
        name === "bearer_token"
          ? "bearer_token must not stand in a file; put the value into one of its own and name that as bearer_token_file"
          : unknownMember(name, known),
    }));
}

async function schemaIn(
  path: string,
  { folder, within }: RegistryFile,
): Promise<{ value: unknown; place: (path: FieldPath) => string }> {
  const real = await inField("schemata", () => referredFile(path, folder, within));
  const bytes = await inField("schemata", () => readRegularFile(real));
  const { documents, problems } = parseDocuments(path, bytes);
  const [slip] = problems;
  if (slip !== undefined) throw new PlacedError(slip.place, slip.message);
  const [document, more] = documents;
  if (document === undefined || more !== undefined) {
    throw new PlacedError(path, 'holds no schema: a JSON Schema is one object such as {"type": "object"}');
  }
  return document;
}

async function bearerTokenOf(
  values: Record<string, unknown>,
  { folder, within }: RegistryFile,
  { bearerTokenFolder: own }: References,
): Promise<string | undefined> {
  const path = values["bearer_token_file"];
  if (path === undefined) return undefined;
  if (typeof path !== "string") throw invalidField("bearer_token_file", "must be the path of a file");
  if ((values["bearer"] ?? "own") !== "own") {
    throw invalidField("bearer", "must be own, or be left out, with a bearer_token_file");
  }
  delete values["bearer_token_file"];
  values["bearer"] = "own";
  return inField("bearer_token_file", async () => {
    const real = await referredFile(path, own ?? folder, own ?? within);
    const token = Buffer.from(await readRegularFile(real)).toString("utf8");
    return checkBearerToken("bearer_token_file", token.trim());
  });
}

/** A failure of the system's, or a mistake in a path, as one of the member that led to it. */
async function inField<T>(field: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof EvregError && error.code !== "usage") throw error;
    throw invalidField(field, error instanceof Error ? error.message : String(error));
  }
}

/** As the service checks a request, in the same order; names come out trimmed. */
function checkMembers(kind: Declarable, values: Record<string, unknown>): void {
  const checks: Readonly<Record<string, (field: string, value: string) => unknown>> = {
    action: checkActionName,
    successor: checkActionName,
    application: checkLabel,
    subscription: checkLabel,
    handler: checkHandlerForm,
  };
  for (const [name, check] of Object.entries(checks)) {
    const value = values[name];
    if (typeof value !== "string") continue;
    const checked = check(name, value);
    if (typeof checked === "string") values[name] = checked;
  }
  const fault = validatorOf(kind).validate(values);
  if (fault !== undefined) throw invalidField(fault.field, fault.message);
  const { headers, ordered, on_exhausted: exhausted } = values as Values;
  if ((headers ?? null) !== null) checkExtraHeaders("headers", headers as Record<string, string>);
  if (ordered !== true && (exhausted ?? null) !== null) {
    throw invalidField("on_exhausted", "is for subscriptions that are ordered only");
  }
}

const validators = new Map<Declarable, Validator>();

function validatorOf(kind: Declarable): Validator {
  let validator = validators.get(kind);
  if (validator === undefined) validators.set(kind, (validator = compileSchema(kind.body)));
  return validator;
}
