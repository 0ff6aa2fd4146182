import { Words } from "../../parts/layout.tsx";
import { kindOf, type OpenApi, resolved, type Schema } from "./open-api.ts";

/** Text with words in backticks as code, and a paragraph for each that is set apart. */
export function Prose({ text }: { readonly text: string | undefined }) {
  if (text === undefined || text === "") return null;
  return (
    <div class="prose">
      {text.split("\n\n").map((paragraph) => (
        <p key={paragraph}>
          <Words text={paragraph} />
        </p>
      ))}
    </div>
  );
}

const DEEPEST = 6;

/** A schema as a list of its members: name, kind, and what it means; what is inside of one opens. */
export function SchemaView(props: {
  readonly document: OpenApi;
  readonly schema: Schema;
  readonly depth?: number;
}) {
  const { document, schema: given, depth = 0 } = props;
  const { schema } = resolved(document, given);
  const members = Object.entries(schema.properties ?? {});
  if (members.length === 0) {
    return (
      <p class="line-of">
        <code>{kindOf(document, schema)}</code> <Words text={schema.description ?? ""} />
      </p>
    );
  }
  return (
    <dl class="members">
      {members.map(([name, member]) => {
        const inner = depth < DEEPEST ? innerOf(document, member) : undefined;
        const about = member.description ?? resolved(document, member).schema.description;
        return (
          <div key={name}>
            <dt class="break">
              <code class="strong">{name}</code>
              {schema.required?.includes(name) === true && <span class="needed">required</span>}
            </dt>
            <dd>
              <code class="kind">{kindOf(document, member)}</code>
              {member.default !== undefined && (
                <span class="muted">
                  {" "}
                  default <code>{JSON.stringify(member.default)}</code>
                </span>
              )}
              {about !== undefined && (
                <p class="soft">
                  <Words text={about} />
                </p>
              )}
              {inner !== undefined && (
                <details class="more-of">
                  <summary>Its members</summary>
                  <SchemaView document={document} schema={inner} depth={depth + 1} />
                </details>
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** The object that a member is, holds in a list, or may be. */
function innerOf(document: OpenApi, given: Schema): Schema | undefined {
  const { schema } = resolved(document, given);
  if (schema.properties !== undefined) return schema;
  if (schema.items !== undefined) return innerOf(document, schema.items);
  return (schema.oneOf ?? schema.anyOf)
    ?.map((branch) => resolved(document, branch).schema)
    .find(({ properties }) => properties !== undefined);
}
