import { _ } from "ajv";
import type { CodeKeywordDefinition } from "ajv";
import { firstEqual, firstRepeated, sameValue, ValueSet } from "./equality.ts";
import { isMultipleOf } from "./multiple-of.ts";

/** Keywords that compare values, by the equality of JSON Schema and with their steps counted. */
export const VALUE_KEYWORDS: readonly CodeKeywordDefinition[] = [
  {
    keyword: "enum",
    schemaType: "array",
    error: { message: "", params: ({ schemaCode }) => _`{allowedValues: ${schemaCode}}` },
    code(cxt) {
      const allowed = cxt.gen.scopeValue("obj", { ref: new ValueSet(cxt.schema as unknown[]) });
      cxt.fail(_`!${allowed}.has(${cxt.data})`);
    },
  },
  {
    keyword: "const",
    error: { message: "", params: ({ schemaCode }) => _`{allowedValue: ${schemaCode}}` },
    code(cxt) {
      const same = cxt.gen.scopeValue("func", { ref: sameValue, key: sameValue });
      cxt.fail(_`!${same}(${cxt.data}, ${cxt.schemaCode})`);
    },
  },
  {
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    error: { message: "", params: ({ params }) => _`{i: ${params["first"]}, j: ${params["second"]}}` },
    code(cxt) {
      if (cxt.schema !== true) return;
      const { gen, data } = cxt;
      const find = gen.scopeValue("func", { ref: firstRepeated, key: firstRepeated });
      const findFirst = gen.scopeValue("func", { ref: firstEqual, key: firstEqual });
      const second = gen.const("second", _`${find}(${data})`);
      cxt.setParams({ second, first: _`${findFirst}(${data}, ${second})` });
      cxt.fail(_`${second} >= 0`);
    },
  },
  {
    keyword: "multipleOf",
    type: "number",
    schemaType: "number",
    error: { message: "", params: ({ schemaCode }) => _`{multipleOf: ${schemaCode}}` },
    code(cxt) {
      const check = cxt.gen.scopeValue("func", { ref: isMultipleOf, key: isMultipleOf });
      cxt.fail(_`!${check}(${cxt.data}, ${cxt.schema as number})`);
    },
  },
];
