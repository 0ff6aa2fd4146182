import { useEffect, useRef } from "preact/hooks";
import { useDraft } from "../../api/drafts.ts";
import { apiUrl, askText, type Envelope, useResource } from "../../api/resource.ts";
import { Command } from "../../parts/copy.tsx";
import { CameBack, EXACT } from "../../parts/form.tsx";
import { useKeys } from "../../parts/keys.ts";
import { Button, Head, Section, Words } from "../../parts/layout.tsx";
import { Split } from "../../parts/list.tsx";
import { linkTo, type Route, setQuery } from "../../parts/route.ts";
import { Empty, Waiting } from "../../parts/states.tsx";
import { capital } from "../../parts/values.tsx";
import {
  answersOf,
  bodyOf,
  exampleOf,
  foundOperations,
  kindOf,
  type OpenApi,
  type Operation,
  operationsOf,
  resolved,
  type Schema,
} from "./open-api.ts";
import { curlLine, type RequestValues, TryIt } from "./try-it.tsx";

const readDocument = async (path: string, signal: AbortSignal): Promise<Envelope<OpenApi>> => ({
  data: JSON.parse(await askText(path, { signal })) as OpenApi,
});

/** All that the API can do, and trying it. */
export function Api({ route }: { readonly route: Route }) {
  const read = useResource<OpenApi>("/openapi.json", { read: readDocument });
  const document = read.answer?.data;
  if (document === undefined) return <Waiting source={read} rows={12} screen="API" />;
  const operations = operationsOf(document);
  return (
    <Split
      title="API"
      acts={
        <a class="btn" href={apiUrl("/openapi.json")} target="_blank" rel="noopener">
          openapi.json
        </a>
      }
      route={route}
      list={<OperationList operations={operations} route={route} />}
      detail={(id) => {
        const operation = operations.find(({ operationId }) => operationId === id);
        if (operation !== undefined) {
          return <OperationView document={document} operation={operation} query={route.query} />;
        }
        return (
          <Empty title="There is no such operation" button={<Button to="#/api" label="All operations" />}>
            It may be of another version.
          </Empty>
        );
      }}
    />
  );
}

function OperationList(props: { readonly operations: readonly Operation[]; readonly route: Route }) {
  const { operations, route } = props;
  const [, picked] = route.path;
  const search = route.query["find"] ?? "";
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLElement>(null);
  useEffect(
    () => list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }),
    [picked],
  );
  useKeys([{ key: "/", what: "Filter", run: () => input.current?.focus() }]);
  const tags = Map.groupBy(foundOperations(operations, search), ({ tags: [tag = ""] }) => tag);
  return (
    <section ref={list} class="stack list" aria-label="Operations">
      <div class="field">
        <input
          ref={input}
          value={search}
          aria-label="Filter operations"
          placeholder="A path, or what it does"
          {...EXACT}
          onInput={(event) => setQuery(route, "find", event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <kbd>/</kbd>
      </div>
      {tags.size === 0 && <p class="muted">No operation has all of these words.</p>}
      {[...tags].map(([tag, shown]) => (
        <Section key={tag} title={capital(tag)}>
          <ul class="panel operations">
            {shown.map(({ operationId, method, path, summary }) => (
              <li key={operationId}>
                <a
                  href={linkTo(["api", operationId], route.query)}
                  aria-current={operationId === picked ? "true" : undefined}
                >
                  <code class={method === "DELETE" ? "method danger-text" : "method"}>{method}</code>
                  <code class="break">{path}</code>
                  <span class="does soft">{summary}</span>
                </a>
              </li>
            ))}
          </ul>
        </Section>
      ))}
    </section>
  );
}

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
function OperationView(props: {
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
        lede={
          <code class="break">
            <b>{operation.method}</b> {operation.path}
          </code>
        }
      />
      <div class="stack tight narrow soft">
        {(operation.description ?? "").split("\n\n").map((paragraph) => (
          <p key={paragraph}>
            <Words text={paragraph} />
          </p>
        ))}
      </div>
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
            const words = (
              <span class="soft">
                <code class="strong">{status}</code> <Words text={description} />
              </span>
            );
            return (
              <li key={status}>
                {answered !== undefined && status.startsWith("2") ? (
                  <details class="more-of">
                    <summary>{words}</summary>
                    <SchemaView document={document} schema={answered} />
                  </details>
                ) : (
                  words
                )}
              </li>
            );
          })}
        </ul>
      </Section>
    </article>
  );
}

const DEEPEST = 6;

/** A schema as a list of its members: name, kind, and what it means; what is inside of one opens. */
function SchemaView(props: { readonly document: OpenApi; readonly schema: Schema; readonly depth?: number }) {
  const { document, schema: unresolved, depth = 0 } = props;
  const { schema } = resolved(document, unresolved);
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
              {schema.required?.includes(name) === true && <p class="muted small">required</p>}
            </dt>
            <dd>
              <code class="kind">{kindOf(document, member)}</code>
              {member.default !== undefined && (
                <span class="muted"> default {JSON.stringify(member.default)}</span>
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
function innerOf(document: OpenApi, unresolved: Schema): Schema | undefined {
  const { schema } = resolved(document, unresolved);
  if (schema.properties !== undefined) return schema;
  if (schema.items !== undefined) return innerOf(document, schema.items);
  return (schema.oneOf ?? schema.anyOf)
    ?.map((branch) => resolved(document, branch).schema)
    .find(({ properties }) => properties !== undefined);
}
