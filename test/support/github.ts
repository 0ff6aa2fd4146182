import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";

const require = createRequire(import.meta.url);

interface SchemaDocument {
  readonly definitions: Readonly<Record<string, unknown>>;
}
interface ExampleSet {
  readonly name: string;
  readonly examples: readonly object[];
}

/** One of GitHub's webhook event types, with the payloads GitHub recorded for it. */
export interface GitHubType {
  readonly name: string;
  readonly schemata: Record<string, unknown>;
  readonly payloads: readonly object[];
}

/** The Draft 7 schemas of all types, as GitHub publishes them. */
export function githubDocument(): SchemaDocument {
  return require("@octokit/webhooks-schemas") as SchemaDocument;
}

/** Each recorded type with its Draft 7 schema, cut down to the definitions it reaches. */
export function githubTypes(): GitHubType[] {
  const document = githubDocument();
  const examples = require("@octokit/webhooks-examples") as readonly ExampleSet[];
  return examples.map(({ name, examples: payloads }) => ({
    name: `github.${name}`,
    schemata: schemaOf(document, name),
    payloads,
  }));
}

/** How a published schema came to its next version. */
export interface NextVersion {
  readonly name: string;
  readonly old: Record<string, unknown>;
  readonly next: Record<string, unknown>;
}

/** What GitHub made of its event types from one major version of their schemas to the next, where anything changed. */
export function githubVersions(): NextVersion[] {
  const documents = [
    require("webhooks-schemas-5") as SchemaDocument,
    require("webhooks-schemas-6") as SchemaDocument,
    githubDocument(),
  ];
  const names = (require("@octokit/webhooks-examples") as readonly ExampleSet[]).map(({ name }) => name);
  return documents.slice(1).flatMap((after, index) => {
    const before = documents[index]!;
    return names
      .filter((name) => before.definitions[rootOf(before, name)] !== undefined)
      .map((name) => ({
        name: `github.${name} ${index + 6}`,
        old: schemaOf(before, name),
        next: schemaOf(after, name),
      }))
      .filter(({ old, next }) => !isDeepStrictEqual(old, next));
  });
}

/** The versions of AsyncAPI's schema for its documents, as far as they are within evreg's limits. */
export function asyncApiVersions(): NextVersion[] {
  const { schemasWithoutId: schemas } = require("@asyncapi/specs") as {
    schemasWithoutId: Readonly<Record<string, Record<string, unknown>>>;
  };
  const versions = Object.keys(schemas).filter((version) => /^[12]\.\d\.0$/.test(version));
  return versions.slice(1).map((version, index) => ({
    name: `asyncapi ${version}`,
    old: schemas[versions[index]!]!,
    next: schemas[version]!,
  }));
}

function rootOf({ definitions }: SchemaDocument, name: string): string {
  return definitions[`${name}_event`] === undefined ? `${name}$event` : `${name}_event`;
}

function schemaOf(document: SchemaDocument, name: string): Record<string, unknown> {
  const root = rootOf(document, name);
  const definitions: Record<string, unknown> = {};
  const waiting = [root];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next in definitions) continue;
    const definition = document.definitions[next];
    if (definition === undefined) throw new Error(`no definition ${next}`);
    definitions[next] = definition;
    waiting.push(...referencedBy(definition));
  }
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    $ref: `#/definitions/${root}`,
    definitions,
  };
}

function referencedBy(definition: unknown): string[] {
  const found = JSON.stringify(definition).matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g);
  return [...found].map((match) => match[1] ?? "");
}

/**
 * The schema with all that a recorded payload may fall short of taken out. Some of the recordings are older than the
 * schemas published beside them; an owner who wants them accepted has to loosen the schema.
 */
export function loosened(schemata: Record<string, unknown>): Record<string, unknown> {
  return loosen(schemata) as Record<string, unknown>;
}

const STRICT_KEYWORDS = new Set(["required", "additionalProperties", "format", "enum", "const"]);

function loosen(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(loosen);
  if (typeof part !== "object" || part === null) return part;
  const kept = Object.entries(part).filter(([name, value]) => isSchema(value) || !isStrict(name, value));
  // Once they are loose, several of the alternatives fit.
  return Object.fromEntries(kept.map(([name, value]) => [name === "oneOf" ? "anyOf" : name, loosen(value)]));
}

function isStrict(name: string, value: unknown): boolean {
  return STRICT_KEYWORDS.has(name) || (name === "type" && value !== "object" && value !== "array");
}

/** A property may have a keyword's name; then its schema stands where the keyword's value would. */
function isSchema(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
