type Json = Readonly<Record<string, unknown>>;

/** A JSON Schema as OpenAPI 3.1 has it, with what is read here. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface ResponseObject extends Content {
  readonly $ref?: string;
  readonly description?: string;
}

interface Described {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Json[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

/** What `/openapi.json` answers, as far as it is read here. */
export interface OpenApi {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, ResponseObject>>;
  };
}

export interface Operation extends Described {
  /** The method in capitals. */
  readonly method: string;
  /** The path with its parameters as `{name}`. */
  readonly path: string;
}

export function operationsOf({ paths }: OpenApi): readonly Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) =>
      Object.assign({}, described, { method: method.toUpperCase(), path }),
    ),
  );
}

/** Finds the operations with all words of a search somewhere in them. */
export function foundOperations(operations: readonly Operation[], search: string): readonly Operation[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return operations.filter(({ method, path, operationId, summary, tags }) => {
    const text = `${method} ${path} ${operationId} ${summary} ${tags.join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** The scope that an operation needs, as its description says it. */
export const scopeOf = ({ description }: Operation): string | undefined =>
  /Needs the scope `(\w+)`/.exec(description ?? "")?.[1];

export const needsNoToken = ({ security }: Operation): boolean => security.length === 0;

const nameIn = (reference: string): string => reference.slice(reference.lastIndexOf("/") + 1);

/** A schema where it is written out, and the name that it goes by. */
export function resolved(
  document: OpenApi,
  schema: Schema,
): { readonly schema: Schema; readonly name?: string } {
  if (schema.$ref === undefined) return { schema };
  const name = nameIn(schema.$ref);
  return { schema: document.components.schemas[name] ?? {}, name };
}

export function answersOf(
  document: OpenApi,
  { responses }: Operation,
): readonly { readonly status: string; readonly description: string; readonly schema: Schema | undefined }[] {
  return Object.entries(responses).map(([status, answer]) => {
    const described = answer.$ref === undefined ? answer : document.components.responses[nameIn(answer.$ref)];
    return { status, description: described?.description ?? "", schema: schemaIn(described) };
  });
}

export const bodyOf = ({ requestBody }: Operation): Schema | undefined => schemaIn(requestBody);

const schemaIn = (content: Content | undefined): Schema | undefined =>
  Object.values(content?.content ?? {})[0]?.schema;

const DEEPEST = 8;
/** Members that are required in the usual case only, by the titles of bodies. */
const ALSO: Readonly<Record<string, readonly string[]>> = { NewSubscription: ["handler"] };

/** A value to begin with: what the schema gives as an example, else of each required member the simplest there is. */
export function exampleOf(document: OpenApi, whole: Schema, depth = 0): unknown {
  const { schema } = resolved(document, whole);
  if (schema.examples !== undefined && schema.examples.length > 0) return schema.examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum !== undefined) return schema.enum[0];
  if (depth > DEEPEST) return null;
  const branch = schema.oneOf?.[0] ?? schema.anyOf?.[0];
  if (branch !== undefined && schema.properties === undefined) return exampleOf(document, branch, depth + 1);
  const type = Array.isArray(schema.type) ? (schema.type as readonly string[])[0] : schema.type;
  if (type === "object" || schema.properties !== undefined) {
    const also = schema.title === undefined ? [] : (ALSO[schema.title] ?? []);
    const members = [...(schema.required ?? []), ...also].map(
      (name) => [name, exampleOf(document, schema.properties?.[name] ?? {}, depth + 1)] as const,
    );
    return Object.fromEntries(members);
  }
  if (type === "array")
    return schema.items === undefined ? [] : [exampleOf(document, schema.items, depth + 1)];
  if (type === "integer" || type === "number") return schema.minimum ?? 0;
  if (type === "boolean") return false;
  if (type === "string") return schema.format === "date-time" ? "2026-01-31T12:00:00Z" : "text";
  return null;
}

/** What a value may be, in a few words: `integer from 1 to 500`, `full | producer`. */
export function kindOf(document: OpenApi, whole: Schema): string {
  const { schema, name } = resolved(document, whole);
  if (name !== undefined) return name;
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const branches = schema.oneOf ?? schema.anyOf;
  if (branches !== undefined && schema.type === undefined) {
    return branches.map((branch) => kindOf(document, branch)).join(" | ");
  }
  const type = [schema.type ?? "any"].flat().join(" | ");
  if (schema.items !== undefined) return `list of ${kindOf(document, schema.items)}`;
  const from = schema.minimum === undefined ? "" : ` from ${schema.minimum}`;
  const to =
    schema.maximum === undefined || schema.maximum >= Number.MAX_SAFE_INTEGER ? "" : ` to ${schema.maximum}`;
  const long = schema.maxLength === undefined ? "" : `, at most ${schema.maxLength} characters`;
  return `${type}${schema.format === undefined ? "" : ` (${schema.format})`}${from}${to}${long}`;
}

/** What cannot be shown as one answer here. */
export const NOT_TRIED: Readonly<Record<string, string>> = {
  stream: "It goes on until it is closed. Events shows the same, live.",
  getBackup: "Its answer is a whole data file, for a program to store.",
};

/** What cannot be taken back, and what to say of it before. */
export const CANNOT_BE_UNDONE: Readonly<Record<string, string>> = {
  deleteSubscription: "Its unfinished deliveries are cancelled.",
  revokeToken: "Whoever uses it is refused from now on.",
  rotateSubscriptionSecret: "Handlers must know the new secret before the overlap ends.",
  skipDelivery: "It is given up, and its handler does not get the event.",
  cancelReplay: "What it has not made due yet is not sent.",
};
