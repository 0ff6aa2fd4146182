import type { Token } from "../../../domain/token.ts";
import { identity, may } from "../../api/identity.ts";
import { send } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { useActing } from "../../parts/acting.ts";
import { Button } from "../../parts/button.tsx";
import { Head } from "../../parts/layout.tsx";
import { List, partOf } from "../../parts/list.tsx";
import { linkTo, type Route } from "../../parts/route.ts";
import { Empty } from "../../parts/states.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time, Until } from "../../parts/time.tsx";
import { say, sayError } from "../../parts/toast.tsx";
import { NewTokenForm } from "./new-token.tsx";

const EVERY_MS = 10_000;

/** Who may ask for what: all tokens, and a form for a new one. */
export function Tokens({ route }: { readonly route: Route }) {
  return route.path[1] === "new" ? <NewTokenForm /> : <TokenList route={route} />;
}

function TokenList({ route }: { readonly route: Route }) {
  const read = useResource<readonly Token[]>("/v1/tokens", { everyMs: EVERY_MS });
  const { act } = useActing(sayError);
  const revoke = ({ rowid, name, scopes }: Token): void =>
    void act(
      async () => {
        await send("DELETE", `/v1/tokens/${rowid}`);
        say(`${name} is revoked.`);
      },
      {
        title: `Revoke ${name}?`,
        body: (
          <>
            <p>
              Whoever uses it is refused from now on. It may do: {scopes.join(", ")}. It cannot be made valid
              again.
            </p>
            {name === identity.value?.name && (
              <p>This page is signed in with a token of this name, and may be signed out.</p>
            )}
          </>
        ),
        act: "Revoke it",
        keep: "Keep it",
        danger: true,
        type: name,
      },
    );
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
        <button class="btn bare danger" aria-label={`Revoke ${token.name}`} onClick={() => revoke(token)}>
          Revoke…
        </button>
      ),
    },
  ];
  const create = <Button look="main" to={linkTo(["tokens", "new"])} label="Create a token" />;
  return (
    <List
      title="Tokens"
      what="token"
      route={route}
      of={partOf(read.answer?.data, read, route)}
      columns={columns}
      keyOf={({ rowid }) => rowid}
      heading={<Head title="Tokens" acts={may("admin") && create} />}
      empty={
        <Empty title="No token yet" command="evreg tokens create 'shop backend' --scope publish">
          Programs and people sign in with tokens. A server for development needs none.
        </Empty>
      }
    />
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
