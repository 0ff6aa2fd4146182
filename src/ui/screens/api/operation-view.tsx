import { Button } from "../../parts/button.tsx";
import { Words, Head, Section } from "../../parts/layout.tsx";
import { useDraft } from "../../api/drafts.ts";
import { Command } from "../../parts/copy.tsx";
import { CameBack } from "../../parts/form.tsx";
import { linkTo } from "../../parts/route.ts";
import { answersOf, bodyOf, exampleOf, type OpenApi, type Operation } from "./open-api.ts";
import { curlLine, type RequestValues } from "./request-lines.ts";
import { Prose, SchemaView } from "./schema-view.tsx";
import { TryIt } from "./try-it.tsx";

interface Request {
  readonly values: RequestValues;
  readonly body?: string;
}

const CREDENTIAL = /"(?:bearer_token|code|secret|token)"/;

/** A body that may hold a credential is kept nowhere. */
function withoutCredentials({ values, body }: Request): Request {
  return body === undefined || CREDENTIAL.test(body) ? { values } : { values, body };
}

/** One operation: what it does, what to send, what it answers; and trying it. */
export function OperationView(props: {
  readonly document: OpenApi;
  readonly operation: Operation;
  readonly query: Readonly<Record<string, string>>;
}) {
  const { document, operation, query } = props;
  const schema = bodyOf(operation);
  const draft = useDraft<Request>(
    linkTo(["api", operation.operationId]),
    () => ({
      values: {},
      ...(schema === undefined ? {} : { body: JSON.stringify(exampleOf(document, schema), null, 2) }),
    }),
    withoutCredentials,
  );
  const { values, body } = draft.fields;
  return (
    <article class="detail" aria-label={operation.summary}>
      <Button look="bare back" to={linkTo(["api"], query)} label="All operations" />
      <Head
        isRecord
        title={operation.summary}
        note={
          <code class="break">
            <b>{operation.method}</b> {operation.path}
          </code>
        }
      />
      <Prose text={operation.description} />
      <CameBack draft={draft} />
      <TryIt
        operation={operation}
        values={values}
        setValues={(next) => draft.change({ values: next })}
        body={body}
        setBody={(next) => draft.change({ body: next })}
        sent={draft.drop}
      />
      <Section title="In a shell">
        <Command text={curlLine(operation, values, body)} />
      </Section>
      {schema !== undefined && (
        <Section title="Body" note="JSON">
          <div class="panel">
            <SchemaView document={document} schema={schema} />
          </div>
        </Section>
      )}
      <Section title="Answers">
        <ul class="panel lines">
          {answersOf(document, operation).map(({ status, description, schema: answered }) => {
            const code = <code class="strong">{status}</code>;
            return (
              <li key={status}>
                {answered !== undefined && status.startsWith("2") ? (
                  <details class="more-of">
                    <summary>
                      {code} <Words text={description} />
                    </summary>
                    <SchemaView document={document} schema={answered} />
                  </details>
                ) : (
                  <>
                    {code}{" "}
                    <span class="soft">
                      <Words text={description} />
                    </span>
                  </>
                )}
              </li>
            );
          })}
        </ul>
      </Section>
    </article>
  );
}
