import { LABEL_PATTERN, NAME_LENGTH } from "../names.ts";
import { type BodySchema, label } from "./members.ts";

export const NEW_TOKEN: BodySchema = {
  title: "NewToken",
  type: "object",
  properties: {
    name: { ...label, description: "For people: who uses it.", examples: ["shop backend"] },
    scopes: {
      type: "array",
      minItems: 1,
      maxItems: 100,
      items: {
        type: "string",
        pattern: `^(?:publish|read|write|admin)(?::${LABEL_PATTERN})?$`,
        maxLength: NAME_LENGTH + 8,
      },
      description:
        "publish, read, write or admin; each may be limited to an application, as in publish:billing.",
      examples: [["publish:billing", "read"]],
    },
    expires_at: {
      type: "string",
      format: "date-time",
      description: "ISO 8601 with its zone, in the future. Left out: it never expires.",
      examples: ["2030-01-01T00:00:00Z"],
    },
  },
  required: ["name", "scopes"],
  additionalProperties: false,
};
