import type { Token } from "../../../domain/token.ts";
import { askJson } from "../../api/request.ts";
import { identity, may } from "../../api/identity.ts";
import { noted, useResource } from "../../api/resource.ts";
import { pageOf } from "../../parts/pages.tsx";
import { Empty, Failed, Waiting } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time, Until } from "../../parts/time.tsx";
import { confirm } from "../../shell/confirm.tsx";
import { linkTo, type Route } from "../../shell/route.ts";
import { say, sayError } from "../../shell/toast.tsx";
import { NewTokenForm } from "./new-token.tsx";

const EVERY_MS = 10_000;

/** Who may ask for what: all tokens, and a form for a new one. */
export function Tokens({ route }: { readonly route: Route }) {
  return route.path[1] === "new" ? <NewTokenForm /> : <TokenList route={route} />;
}

function TokenList({ route }: { readonly route: Route }) {
  const { answer, error, reload } = useResource<readonly Token[]>("/v1/tokens", { everyMs: EVERY_MS });
  const { rows, foot } = pageOf(answer?.data, route);
  const columns: readonly Column<Token>[] = [
    { head: "Name", grow: true, cell: ({ name }) => <span title={name}>{name}</span> },
    { head: "Scopes", cell: ({ scopes }) => <Scopes scopes={scopes} /> },
    { head: "Last used", wide: true, cell: ({ last_used_at: at }) => <LastUse at={at} /> },
    { head: "Expires", wide: true, cell: ({ expires_at: at }) => <Expiry at={at} /> },
    { head: "Created", wide: true, cell: ({ timestamped }) => <Time at={timestamped} /> },
    {
      head: "Acts",
      top: <span class="sr">Acts</span>,
      right: true,
      cell: (token) => (
        <button
          class="btn bare danger"
          aria-label={`Revoke ${token.name}`}
          onClick={() => void revoke(token, reload)}
        >
          Revoke…
        </button>
      ),
    },
  ];
  return (
    <div class="stack">
      <header class="head">
        <h1 class="what">Tokens</h1>
        {may("admin") && (
          <div class="acts">
            <a class="btn main" href={linkTo(["tokens", "new"])}>
              Create a token
            </a>
          </div>
        )}
      </header>
      {error !== undefined && rows !== undefined && <Failed error={error} reload={reload} />}
      <div class="panel">
        {rows === undefined ? (
          <Waiting error={error} reload={reload} rows={6} />
        ) : rows.length === 0 ? (
          <Empty title="No token yet" command="evreg tokens create 'shop backend' --scope publish">
            Programs and people sign in with tokens. A server for development needs none.
          </Empty>
        ) : (
          <Table label="Tokens" rows={rows} columns={columns} keyOf={({ rowid }) => rowid} />
        )}
        {foot}
      </div>
    </div>
  );
}

function Scopes({ scopes }: { readonly scopes: readonly string[] }) {
  return (
    <span class="cut-text" title={scopes.join(", ")}>
      {scopes.join(", ")}
    </span>
  );
}

function LastUse({ at }: { readonly at: string | null }) {
  return at === null ? <span class="muted">never</span> : <Time at={at} />;
}

function Expiry({ at }: { readonly at: string | null }) {
  if (at === null) return <span class="muted">never</span>;
  if (Date.parse(at) > Date.now()) return <Until at={at} />;
  return <span class="danger-text">expired</span>;
}

async function revoke({ rowid, name, scopes }: Token, done: () => void): Promise<void> {
  const isMaybeOwn = name === identity.value?.name;
  const yes = await confirm({
    title: `Revoke ${name}?`,
    body: (
      <>
        <p>
          Whoever uses it is refused from now on. It may do: {scopes.join(", ")}. It cannot be made valid
          again.
        </p>
        {isMaybeOwn && <p>This page is signed in with a token of this name, and may be signed out.</p>}
      </>
    ),
    act: "Revoke it",
    keep: "Keep it",
    danger: true,
    type: name,
  });
  if (!yes) return;
  try {
    await askJson(`/v1/tokens/${rowid}`, { method: "DELETE" });
    say(`${name} is revoked.`);
  } catch (error) {
    sayError(noted(error));
  }
  done();
}
