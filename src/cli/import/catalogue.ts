import { isObject, type JsonObject } from "../../schema/keywords.ts";
import { dialectAt } from "../../schema/translate/dialect.ts";
import { Source, Untranslatable } from "../../schema/translate/source.ts";
import { usage } from "../usage.ts";
import { asyncApiMessages } from "./asyncapi.ts";
import type { Finder, Message, Omitted } from "./message.ts";
import { openApiMessages } from "./openapi.ts";

/** The events that a document declares. */
export interface Catalogue {
  readonly source: Source;
  /** `info.title`, where it is a text. */
  readonly title: string | undefined;
  readonly messages: readonly Message[];
  readonly omitted: readonly Omitted[];
}

/** Ten times those of the largest known; each takes its time to be said in Draft 7 and checked. */
const MOST_MESSAGES = 5_000;

/**
 * The webhooks of an OpenAPI 3.1 document, or the messages of an AsyncAPI 3 one.
 * @param name of the file, for a person
 * @throws `usage` for another document
 */
export function readCatalogue(document: unknown, name: string): Catalogue {
  const { source, find } = kindOf(document, name);
  const messages: Message[] = [];
  const omitted: Omitted[] = [];
  for (const { read, ...known } of find(source, document as JsonObject)) {
    if (messages.length + omitted.length >= MOST_MESSAGES) {
      const most = MOST_MESSAGES.toLocaleString("en");
      throw usage(`${name} declares more than ${most} messages; cut it into documents of fewer.`);
    }
    try {
      messages.push({ deprecated: false, ...known, ...read() });
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error;
      omitted.push({ name: known.name, place: error.pointer, message: error.message });
    }
  }
  const { info } = document as JsonObject;
  const title = isObject(info) && typeof info["title"] === "string" ? info["title"] : undefined;
  return { source, title, messages, omitted };
}

function kindOf(document: unknown, name: string): { readonly source: Source; readonly find: Finder } {
  const { openapi, swagger, asyncapi, jsonSchemaDialect } = isObject(document) ? document : {};
  if (/^3\.[12]\b/.test(String(openapi))) {
    const dialect = typeof jsonSchemaDialect === "string" ? dialectAt(jsonSchemaDialect) : "2020-12";
    if (dialect !== undefined) return { source: new Source(document, dialect), find: openApiMessages };
    const given = JSON.stringify(jsonSchemaDialect);
    throw usage(
      `${name}: jsonSchemaDialect ${given} is none that is read: JSON Schema 2020-12 and draft-07 are.`,
    );
  }
  if (/^3\b/.test(String(asyncapi))) {
    return { source: new Source(document, "draft-07"), find: asyncApiMessages };
  }
  const version = String(openapi ?? swagger ?? asyncapi);
  if (asyncapi !== undefined) {
    throw usage(`${name} is AsyncAPI ${version}; convert it to 3.0 first, with AsyncAPI's own tools.`);
  }
  if (openapi !== undefined || swagger !== undefined) {
    throw usage(`${name} is OpenAPI ${version}, which has no webhooks; 3.1 has.`);
  }
  throw usage(
    `${name} is neither an OpenAPI 3.1 document (openapi: 3.1.0) nor an AsyncAPI 3 one (asyncapi: 3.0.0).`,
  );
}
