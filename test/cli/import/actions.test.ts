import { describe, expect, test } from "vitest";
import { parseFile } from "../../../src/cli/registry/documents.ts";
import { linesOfSkipped, placesIn } from "../../../src/cli/registry/import.ts";
import { actionsIn } from "../../../src/import/actions.ts";
import { readCatalogue } from "../../../src/import/catalogue.ts";

/** What comes of a document of YAML: schemas by name, and what is told of them and of the others. */
function imported(text: string, prefix?: string) {
  const document = parseFile("doc.yaml", Buffer.from(text));
  if ("problem" in document) throw new Error(document.problem.message);
  const placeOf = placesIn(document);
  const catalogue = readCatalogue(document.value, "doc.yaml");
  const { actions, skipped } = actionsIn(catalogue, prefix);
  return {
    title: catalogue.title,
    schemas: Object.fromEntries(actions.map(({ action, schemata }) => [action, schemata])),
    deprecated: actions.filter(({ deprecated }) => deprecated).map(({ action }) => action),
    notes: actions.flatMap(({ action, notes }) =>
      notes.map(({ pointer, message }) => `${placeOf(pointer)}: ${action}: ${message}`),
    ),
    omitted: linesOfSkipped(skipped, placeOf),
  };
}

const OBJECT = { type: "object" };

/** A webhook with a request body. */
function body(content: string, type = "application/json"): string {
  return `{ post: { requestBody: { content: { ${type}: ${content} } } } }`;
}

describe("OpenAPI 3.1", () => {
  test("each webhook's JSON body becomes an action, wherever its parts are stored", () => {
    const { schemas, deprecated, title, notes, omitted } = imported(`openapi: 3.1.0
info: { title: Shop, version: "1" }
webhooks:
  order.created:
    post:
      deprecated: true
      requestBody:
        content:
          application/xml: { schema: { type: string } }
          application/json: { schema: { $ref: "#/components/schemas/Order" } }
  order.paid: { $ref: "#/components/pathItems/Paid" }
components:
  pathItems:
    Paid: { put: { requestBody: { $ref: "#/components/requestBodies/Paid" } } }
  requestBodies:
    Paid: { content: { application/vnd.shop+json: { schema: { $ref: "#/components/schemas/Paid" } } } }
  schemas:
    Order: { type: object, properties: { of: { $ref: "#/components/schemas/Order" } } }
    Paid: { $ref: "#/components/schemas/Order", required: [at], title: Paid }
`);
    expect({ title, deprecated, notes, omitted }).toEqual({
      title: "Shop",
      deprecated: ["order.created"],
      notes: [],
      omitted: [],
    });
    expect(schemas).toEqual({
      "order.created": { ...OBJECT, properties: { of: { $ref: "#" } } },
      "order.paid": {
        allOf: [{ $ref: "#/definitions/Order" }],
        required: ["at"],
        title: "Paid",
        definitions: { Order: { ...OBJECT, properties: { of: { $ref: "#/definitions/Order" } } } },
      },
    });
  });

  test("what cannot become an action is left out and reported with its line", () => {
    const { schemas, omitted } = imported(`openapi: 3.1.0
webhooks:
  empty: {}
  none: { post: {} }
  form: { post: { requestBody: { content: { multipart/form-data: { schema: {} } } } } }
  bare: ${body("{}")}
  list: ${body("{ schema: { type: array } }")}
  away: { $ref: "other.yaml#/webhooks/away" }
  "~~~": ${body("{ schema: false }")}
  "...": ${body("{ schema: {} }")}
  evreg.own: ${body("{ schema: {} }")}
  ahead: ${body('{ schema: { properties: { zip: { pattern: "(?=a)" } } } }')}
  old: ${body("{ schema: { minimum: 1, exclusiveMinimum: true } }")}
  fine: ${body("{ schema: {} }")}
`);
    expect(schemas).toEqual({ fine: {} });
    expect(omitted).toEqual([
      "doc.yaml:3: empty: it has no operation",
      "doc.yaml:4: none: it has no request body",
      "doc.yaml:5: form: its request body is never JSON",
      "doc.yaml:6: bare: its request body has no schema",
      'doc.yaml:8: away: $ref "other.yaml#/webhooks/away" leads out of this document, and nothing else is read; bundle the documents into one first',
      "doc.yaml:7: list: a payload is always an object, which this schema refuses",
      "doc.yaml:9: ~~~: its schema, with all that it refers to, must be a JSON Schema object",
      "doc.yaml:10: ...: no action can be named so: it must not be empty",
      "doc.yaml:11: evreg.own: no action can be named so: it must not begin with evreg., as evreg keeps these names for events about itself",
      'doc.yaml:12: ahead: pattern: the pattern uses a lookahead or lookbehind, which cannot be checked in linear time; put what must not match into "not": { "pattern": … }, and what must match as well into "allOf"',
      "doc.yaml:13: old: exclusiveMinimum: must be a number",
    ]);
  });

  test("names are turned into action names; two that become equal are both left out unless they are the same", () => {
    const [text, number] = ["string", "number"].map((type) =>
      body(`{ schema: { properties: { a: { type: ${type} } } } }`, '"*/*"'),
    );
    const { schemas, notes, omitted } = imported(
      `openapi: 3.1.0
webhooks:
  /user/signed-up/: ${text}
  user.signed-up: ${text}
  order created: ${text}
  order_created: ${number}
  Ünder: ${text}
`,
      "shop.v1",
    );
    expect(Object.keys(schemas)).toEqual(["shop.v1._nder", "shop.v1.user.signed-up"]);
    expect(notes).toEqual([
      'doc.yaml:7: shop.v1._nder: named "Ünder" in the document',
      'doc.yaml:3: shop.v1.user.signed-up: named "/user/signed-up/" in the document',
    ]);
    const message =
      "shop.v1.order_created: 2 of the document come to the name shop.v1.order_created, with different schemas; name them apart there";
    expect(omitted).toEqual([`doc.yaml:5: ${message}`, `doc.yaml:6: ${message}`]);
  });

  test("jsonSchemaDialect sets the dialect of its schemas", () => {
    const { schemas } = imported(`openapi: 3.1.0
jsonSchemaDialect: http://json-schema.org/draft-07/schema#
webhooks: { a: { post: { requestBody: { content: { application/json: { schema: { items: [{}] } } } } } } }
`);
    expect(schemas).toEqual({ a: { items: [{}] } });
  });
});

describe("AsyncAPI 3", () => {
  test("each message becomes one action, named as the message says", () => {
    const { schemas, notes, omitted } = imported(`asyncapi: 3.0.0
info: { title: Account Service, version: 1.0.0 }
defaultContentType: application/json
channels:
  users:
    messages:
      signed: { $ref: "#/components/messages/UserSignedUp" }
      inline: { payload: { type: object, properties: { a: { format: decimal } } } }
  kept: { $ref: "#/components/channels/kept" }
components:
  channels:
    kept: { messages: { left: { payload: { $ref: "#/components/schemas/Tuple" } } } }
  messageTraits:
    named: { name: overruled, contentType: text/plain }
    json: { name: user.renamed, contentType: application/json }
  messages:
    UserSignedUp: { name: user.signed_up, headers: { type: object }, payload: { $ref: "#/components/schemas/User" } }
    Traits:
      traits: [{ $ref: "#/components/messageTraits/named" }, { $ref: "#/components/messageTraits/json" }]
      payload: { schemaFormat: application/schema+json;version=draft-07, schema: { items: [true] } }
    Referring:
      payload: { schemaFormat: application/schema+json;version=2020-12, schema: { not: { $ref: "#/components/schemas/Tuple" } } }
    Avro: { payload: { schemaFormat: application/vnd.apache.avro;version=1.9.0, schema: {} } }
    Bytes: { contentType: application/octet-stream, payload: { type: string } }
    Empty: {}
  schemas:
    User: { type: object, properties: { friend: { $ref: "#/components/schemas/User", type: "null" } } }
    Tuple: { schemaFormat: application/schema+json;version=2020-12, schema: { prefixItems: [true], items: false } }
`);
    const tuple = { items: [true], additionalItems: false };
    expect(schemas).toEqual({
      "user.signed_up": { ...OBJECT, properties: { friend: { $ref: "#" } } },
      inline: { ...OBJECT, properties: { a: { format: "decimal" } } },
      left: tuple,
      "user.renamed": { items: [true] },
      Referring: { not: { $ref: "#/definitions/schema" }, definitions: { schema: tuple } },
    });
    expect(notes).toEqual([
      'doc.yaml:8: inline: the format "decimal" is not known and checks nothing',
      "doc.yaml:27: user.signed_up: left out: draft-07 ignores type beside $ref",
    ]);
    expect(omitted).toEqual([
      'doc.yaml:24: Bytes: it is "application/octet-stream", and payloads are JSON',
      "doc.yaml:25: Empty: it has no payload",
      'doc.yaml:23: Avro: schemaFormat "application/vnd.apache.avro;version=1.9.0" is none that is read: JSON Schema 2020-12 and draft-07 are',
    ]);
  });
});

test.each([
  ["openapi: 3.0.3", "doc.yaml must be OpenAPI 3.1 or AsyncAPI 3, but is OpenAPI 3.0.3; convert it first."],
  ['swagger: "2.0"', "doc.yaml must be OpenAPI 3.1 or AsyncAPI 3, but is OpenAPI 2.0; convert it first."],
  ["asyncapi: 2.6.0", "doc.yaml must be OpenAPI 3.1 or AsyncAPI 3, but is AsyncAPI 2.6.0; convert it first."],
  ["[1]", "doc.yaml must be OpenAPI 3.1 or AsyncAPI 3, but is something else."],
  ["openapi: 3.1.0\njsonSchemaDialect: a:b", 'doc.yaml: jsonSchemaDialect "a:b" is none that is read'],
])("a document of another kind is refused: %s", (text, message) => {
  expect(() => imported(text)).toThrow(message);
});
