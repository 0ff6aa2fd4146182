import { nearest } from "../../config/nearest.ts";
import { checkBearerToken } from "../../domain/bearer-token.ts";
import { parseDurationMs } from "../../domain/duration.ts";
import { EvregError, invalidField } from "../../domain/error.ts";
import { pathNamed, type FieldPath } from "../../schema/field-path.ts";
import { readRegularFile } from "../input.ts";
import { parseDocuments, type Problem } from "./document.ts";
import { referredFile, type RegistryFile } from "./files.ts";
import { memberMistakes } from "./member-mistakes.ts";
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

/** A record as far as it is read, to be told from others; whether it is one to apply is for `problems` to say. */
export interface CheckedRecord {
  /** `undefined` for what is no mapping. */
  readonly record?: Declared;
  readonly problems: readonly Problem[];
}

/**
 * Holds one record to what the service takes, so that a mistake is found before anything is changed. What only the service
 * knows, such as the networks that handlers may be in, is left to it.
 */
export async function checkRecord(raw: Raw, references: References): Promise<CheckedRecord> {
  const { kind, value, place, file } = raw;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return {
      problems: [{ place: place([]), message: `must be a mapping, which declares one ${kind.noun}` }],
    };
  }
  const known = memberNames(kind);
  const problems = strangers(raw, value);
  // Without the members that are not known, so that those do not hide the mistakes in the others.
  const values = Object.fromEntries<unknown>(Object.entries(value).filter(([name]) => known.includes(name)));
  let placeOf = place;
  let bearerToken: string | undefined;
  const trying = async (act: () => unknown): Promise<void> => {
    try {
      await act();
    } catch (error) {
      problems.push(problemOf(error, placeOf));
    }
  };
  // A member that could not be read is left out of what follows, which would only tell of it again.
  await trying(async () => {
    const path = values["schemata"];
    if (typeof path !== "string") return;
    values["schemata"] = {};
    const schema = await schemaIn(path, file);
    values["schemata"] = schema.value;
    // Places inside the schema are those of its own file.
    placeOf = (inside) => (inside[0] === "schemata" ? schema.place(inside.slice(1)) : place(inside));
  });
  await trying(async () => {
    bearerToken = await bearerTokenOf(values, file, references);
  });
  delete values["bearer_token_file"];
  for (const member of ["timeout_ms", "retry_schedule"]) await trying(() => readDurations(values, member));
  const meant = new Set(Object.keys(value).map((name) => nearest(name, known)));
  problems.push(...memberMistakes(kind, values, meant).map((error) => problemOf(error, placeOf)));
  const record = { kind, values, place: placeOf };
  return { record: bearerToken === undefined ? record : { ...record, bearerToken }, problems };
}

/**
 * Times as they are typed on the command line, such as `30s`, become milliseconds.
 * @throws `invalid`; what is none is then left out of `values`
 */
function readDurations(values: Record<string, unknown>, member: string): void {
  const value = values[member];
  if (value === undefined) return;
  const read = (one: unknown, field: string): unknown => {
    const ms = typeof one === "string" ? parseDurationMs(one) : undefined;
    if (typeof one !== "string" || ms !== undefined) return ms ?? one;
    delete values[member];
    const message = `must be a time such as 500ms, 30s or 2h, or a number of milliseconds; not ${JSON.stringify(one)}`;
    throw invalidField(field, message, one);
  };
  const isList = member === "retry_schedule" && Array.isArray(value);
  values[member] = isList ? value.map((one, index) => read(one, `${member}[${index}]`)) : read(value, member);
}

function problemOf(error: unknown, place: Declared["place"]): Problem {
  if (!(error instanceof EvregError)) throw error;
  const field = error.details["field"];
  const path = typeof field === "string" ? pathNamed(field) : [];
  const known = error instanceof PlacedError ? error.place : undefined;
  return { place: known ?? place(path), message: error.message };
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
