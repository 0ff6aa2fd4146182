/** The dialects of JSON Schema that can be translated. */
export type Dialect = "draft-07" | "2020-12";

const BY_ADDRESS: readonly (readonly [RegExp, Dialect])[] = [
  [/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/, "draft-07"],
  [/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, "2020-12"],
  // OpenAPI's own is 2020-12 with keywords that check nothing.
  [/^https:\/\/spec\.openapis\.org\/oas\/3\.[12]\/dialect\/[\w.-]+$/, "2020-12"],
];

const BY_FORMAT: readonly (readonly [RegExp, Dialect])[] = [
  [/^application\/vnd\.aai\.asyncapi(?:\+(?:json|yaml))?(?:;\s*version=3\.\d+\.\d+)?$/, "draft-07"],
  [/^application\/schema\+(?:json|yaml)(?:;\s*version=draft-07)?$/, "draft-07"],
  [/^application\/schema\+(?:json|yaml);\s*version=(?:draft\/)?2020-12$/, "2020-12"],
];

/** Of a `$schema` or `jsonSchemaDialect`. */
export function dialectAt(address: string): Dialect | undefined {
  return BY_ADDRESS.find(([pattern]) => pattern.test(address))?.[1];
}

/** Of AsyncAPI's `schemaFormat`. */
export function dialectOfFormat(schemaFormat: string): Dialect | undefined {
  return BY_FORMAT.find(([pattern]) => pattern.test(schemaFormat))?.[1];
}
