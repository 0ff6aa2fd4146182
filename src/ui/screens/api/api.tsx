import { capital } from "../../parts/texts.ts";
import { Button } from "../../parts/button.tsx";
import { useEffect, useRef } from "preact/hooks";
import { apiUrl, askText, type Envelope } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { Empty, Waiting } from "../../parts/states.tsx";
import { useKeys } from "../../parts/keys.ts";
import { goTo, linkTo, type Route } from "../../parts/route.ts";
import { foundOperations, type OpenApi, type Operation, operationsOf } from "./open-api.ts";
import { OperationView } from "./operation-view.tsx";
import { EXACT } from "../../parts/form.tsx";

const readDocument = async (path: string, signal: AbortSignal): Promise<Envelope<OpenApi>> => ({
  data: JSON.parse(await askText(path, { signal })) as OpenApi,
});

/** All that the API can do, and trying it. */
export function Api({ route }: { readonly route: Route }) {
  const [, id] = route.path;
  const { answer, error, reload } = useResource<OpenApi>("/openapi.json", { read: readDocument });
  const document = answer?.data;
  if (document === undefined) {
    return (
      <div class="panel">
        <h1 class="sr">API</h1>
        <Waiting of={{ error, reload }} rows={12} />
      </div>
    );
  }
  const operations = operationsOf(document);
  const picked = operations.find(({ operationId }) => operationId === id);
  return (
    <div class={id === undefined ? "split alone" : "split shows-detail narrow-list"}>
      {id !== undefined && <h1 class="sr">{picked?.summary ?? "API"}</h1>}
      <OperationList operations={operations} picked={id} route={route} />
      {picked !== undefined && (
        <OperationView key={id} document={document} operation={picked} query={route.query} />
      )}
      {picked === undefined && id !== undefined && (
        <Empty title="There is no such operation" button={<Button to="#/api" label="All operations" />}>
          It may be of another version.
        </Empty>
      )}
    </div>
  );
}

function OperationList(props: {
  readonly operations: readonly Operation[];
  readonly picked: string | undefined;
  readonly route: Route;
}) {
  const { operations, picked, route } = props;
  const search = route.query["find"] ?? "";
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLElement>(null);
  useEffect(
    () => list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }),
    [picked],
  );
  useKeys([{ key: "/", what: "Filter", run: () => input.current?.focus() }]);
  const shown = foundOperations(operations, search);
  const tags = [...new Set(shown.map(({ tags: [tag = ""] }) => tag))];
  return (
    <section ref={list} class="stack list" aria-label="Operations">
      <header class="head">
        {picked === undefined ? <h1 class="what">API</h1> : <p class="h1 what">API</p>}
        <div class="acts">
          <a class="btn" href={apiUrl("/openapi.json")} target="_blank" rel="noopener">
            openapi.json
          </a>
        </div>
      </header>
      <div class="field">
        <input
          ref={input}
          value={search}
          aria-label="Filter operations"
          placeholder="A path, or what it does"
          {...EXACT}
          onInput={(event) =>
            goTo(linkTo(route.path, { ...route.query, find: event.currentTarget.value }), { replace: true })
          }
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <kbd>/</kbd>
      </div>
      {shown.length === 0 && <p class="muted">No operation has all of these words.</p>}
      {tags.map((tag) => (
        <section key={tag} aria-label={tag}>
          <header>
            <h2>{capital(tag)}</h2>
          </header>
          <ul class="panel operations">
            {shown
              .filter(({ tags: [first] }) => first === tag)
              .map(({ operationId, method, path, summary }) => (
                <li key={operationId}>
                  <a
                    href={linkTo(["api", operationId], route.query)}
                    aria-current={operationId === picked ? "true" : undefined}
                  >
                    <Method method={method} />
                    <code class="path break">{path}</code>
                    <span class="does soft">{summary}</span>
                  </a>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </section>
  );
}

function Method({ method }: { readonly method: string }) {
  return <code class={method === "DELETE" ? "method danger-text" : "method"}>{method}</code>;
}
