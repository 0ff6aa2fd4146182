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
jsonSchemaDialect: https://spec.openapis.org/oas/3.1/dialect/base
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
  two: { post: { requestBody: { content: {} } }, put: { requestBody: { content: {} } } }
  form: { get: {}, post: { requestBody: { content: { multipart/form-data: { schema: {} } } } } }
  bare: ${body("{}")}
  list: ${body("{ schema: { type: array } }")}
  away: { $ref: "other.yaml#/webhooks/away" }
  "~~~": ${body("{ schema: false }")}
  "...": ${body("{ schema: {} }")}
  evreg.own: ${body("{ schema: {} }")}
  ahead: ${body('{ schema: { properties: { zip: { pattern: "(?=a)" } } } }')}
  old: ${body("{ schema: { minimum: 1, exclusiveMinimum: true } }")}
  text: ${body("{ schema: { items: text } }")}
  fine: ${body("{ schema: {} }")}
`);
    expect(schemas).toEqual({ fine: {} });
    expect(omitted).toEqual([
      "doc.yaml:3: empty: it has 0 operations with a request body, and must have one",
      "doc.yaml:4: none: it has 0 operations with a request body, and must have one",
      "doc.yaml:5: two: it has 2 operations with a request body, and must have one",
      "doc.yaml:6: form: its request body is never JSON",
      "doc.yaml:7: bare: its request body has no schema",
      "doc.yaml:8: list: a payload is always an object, which this schema refuses",
      'doc.yaml:9: away: $ref "other.yaml#/webhooks/away" is no pointer into this document (#/…), and nothing else is read; bundle what it needs into the document first',
      "doc.yaml:10: ~~~: its schema, with all that it refers to, must be a JSON Schema object",
      "doc.yaml:11: ...: no action can be named so: it must not be empty",
      "doc.yaml:12: evreg.own: no action can be named so: it must not begin with evreg., as evreg keeps these names for events about itself",
      'doc.yaml:13: ahead: pattern: the pattern uses a lookahead or lookbehind, which cannot be checked in linear time; put what must not match into "not": { "pattern": … }, and what must match as well into "allOf"',
      "doc.yaml:14: old: exclusiveMinimum: must be a number",
      "doc.yaml:15: text: items: must be a schema: an object, true or false",
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
});

test("a schema made to grow without end is refused", () => {
  const kept = Array.from(
    { length: 6_500 },
    (_, at) => `    s${at}: { not: { $ref: "#/components/schemas/s${at + 1}" } }\n`,
  );
  const { omitted } = imported(`openapi: 3.1.0
webhooks: { a: ${body('{ schema: { not: { $ref: "#/components/schemas/s0" } } }')} }
components:
  schemas:
${kept.join("")}    s6500: {}
`);
  expect(omitted).toEqual([
    expect.stringMatching(/^doc.yaml:2: a: its schema, .* must have at most 262,144 bytes/),
  ]);
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
    header: { headers: { type: object } }
  messages:
    UserSignedUp: { name: user.signed_up, headers: { type: object }, payload: { $ref: "#/components/schemas/User" } }
    Traits: { name: user.renamed, traits: [{ $ref: "#/components/messageTraits/header" }], payload: {} }
    Unnamed: { traits: [{ $ref: "#/components/messageTraits/header" }], payload: {} }
    Formatted: { payload: { schemaFormat: application/schema+yaml;version=draft-07, schema: { items: [true] } } }
    Referring: { payload: { not: { $ref: "#/components/schemas/Tuple" } } }
    Avro: { payload: { schemaFormat: application/vnd.apache.avro;version=1.9.0, schema: {} } }
    Bytes: { contentType: application/octet-stream, payload: { type: string } }
    Empty: {}
  schemas:
    User: { type: object, properties: { friend: { $ref: "#/components/schemas/User", type: "null" } } }
    Tuple: { schemaFormat: application/vnd.aai.asyncapi;version=3.0.0, schema: { items: [true] } }
`);
    const tuple = { items: [true] };
    expect(schemas).toEqual({
      "user.signed_up": { ...OBJECT, properties: { friend: { $ref: "#", type: "null" } } },
      inline: { ...OBJECT, properties: { a: { format: "decimal" } } },
      left: tuple,
      "user.renamed": {},
      Formatted: tuple,
      Referring: { not: { $ref: "#/definitions/schema" }, definitions: { schema: tuple } },
    });
    expect(notes).toEqual([
      'doc.yaml:8: inline: the format "decimal" is not known and checks nothing',
      "doc.yaml:25: user.signed_up: type is ignored beside $ref in draft-07; put both into allOf",
    ]);
    expect(omitted).toEqual([
      "doc.yaml:18: Unnamed: traits are not read; write name and contentType into the message",
      'doc.yaml:21: Avro: schemaFormat "application/vnd.apache.avro;version=1.9.0" is not read; write the schema in JSON Schema draft-07',
      'doc.yaml:22: Bytes: it is "application/octet-stream", and payloads are JSON',
      "doc.yaml:23: Empty: it has no payload",
    ]);
  });
});

test.each([
  ["openapi: 3.0.3", "doc.yaml must be OpenAPI 3.1 or AsyncAPI 3, but is OpenAPI 3.0.3; convert it first."],
  ['swagger: "2.0"', "doc.yaml must be OpenAPI 3.1 or AsyncAPI 3, but is OpenAPI 2.0; convert it first."],
  ["asyncapi: 2.6.0", "doc.yaml must be OpenAPI 3.1 or AsyncAPI 3, but is AsyncAPI 2.6.0; convert it first."],
  ["[1]", "doc.yaml must be OpenAPI 3.1 or AsyncAPI 3, but is something else."],
  ["openapi: 3.1.0\njsonSchemaDialect: a:b", 'doc.yaml: jsonSchemaDialect "a:b" is not read'],
])("a document of another kind is refused: %s", (text, message) => {
  expect(() => imported(text)).toThrow(message);
});
