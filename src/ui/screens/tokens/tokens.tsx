import { useState } from "preact/hooks";
import type { ScopeName, Token, TokenWithSecret } from "../../../domain/token.ts";
import { send, useResource } from "../../api/resource.ts";
import { identity, may } from "../../api/session.ts";
import { say, sayError, useActing } from "../../parts/acting.ts";
import { SecretOnce } from "../../parts/copy.tsx";
import { ChoiceField, Field, FieldGroup, FormScreen, TextField, useForm } from "../../parts/form.tsx";
import { Button, Head } from "../../parts/layout.tsx";
import { List, partOf } from "../../parts/list.tsx";
import { linkTo, type Route, useRecordName } from "../../parts/route.ts";
import { Empty } from "../../parts/states.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time, Until } from "../../parts/values.tsx";

const EVERY_MS = 10_000;

/** Who may ask for what: all tokens, and a form for a new one. */
export function Tokens({ route }: { readonly route: Route }) {
  return route.path[1] === "new" ? <NewTokenForm /> : <TokenList route={route} />;
}

function TokenList({ route }: { readonly route: Route }) {
  const read = useResource<readonly Token[]>("/v1/tokens", { everyMs: EVERY_MS });
  const { act } = useActing(sayError);
  const revoke = ({ rowid, name, scopes }: Token): void =>
    act(
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
    {
      head: "Scopes",
      cell: ({ scopes }) => (
        <span class="cut-text" title={scopes.join(", ")}>
          {scopes.join(", ")}
        </span>
      ),
    },
    {
      head: "Last used",
      wide: true,
      cell: ({ last_used_at: at }) => (at === null ? NEVER : <Time at={at} />),
    },
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
      source={partOf("token", read.answer?.data, read, route)}
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

const NEVER = <span class="muted">never</span>;

function Expiry({ at }: { readonly at: string | null }) {
  if (at === null) return NEVER;
  if (Date.parse(at) > Date.now()) return <Until at={at} />;
  return <span class="danger-text">expired</span>;
}

const SCOPES: readonly (readonly [name: ScopeName, what: string])[] = [
  ["publish", "publishes events"],
  ["read", "sees everything but tokens, audit and doctor"],
  ["listen", "claims deliveries of pull subscriptions"],
  ["write", "changes actions and subscriptions, sends again; holds listen"],
  ["admin", "may do everything"],
];

const DAY_MS = 86_400_000;
/** By their days. */
const LIVES = { never: "Never", 1: "In a day", 30: "In 30 days", 365: "In a year" } as const;

const NEW_TOKEN = {
  name: "",
  scopes: ["publish"] as readonly ScopeName[],
  application: "",
  days: "365" as `${keyof typeof LIVES}`,
};

/** A form for a new token, which is shown once. */
function NewTokenForm() {
  const form = useForm(linkTo(["tokens", "new"]), () => NEW_TOKEN);
  const { name, scopes, application, days } = form.draft.fields;
  const [created, setCreated] = useState<TokenWithSecret | undefined>();
  useRecordName("New");
  if (created !== undefined) {
    return (
      <SecretOnce
        title={`${created.name} is created`}
        secret={created.token}
        what="the token"
        otherwise="To have one then, create another and revoke this one."
        next={<Button to={linkTo(["tokens"])} label="All tokens" />}
      >
        <p>
          It may do: {created.scopes.join(", ")}. Keep it where its program reads it. It is shown this once.
        </p>
      </SecretOnce>
    );
  }
  const limit = application.trim();
  const create = async (): Promise<void> => {
    const endMs = Date.now() + Number(days) * DAY_MS;
    const body = {
      name: name.trim(),
      scopes: SCOPES.filter(([scope]) => scopes.includes(scope)).map(([scope]) =>
        limit === "" ? scope : `${scope}:${limit}`,
      ),
      ...(days === "never" ? {} : { expires_at: new Date(endMs).toISOString() }),
    };
    const { data } = await send<TokenWithSecret>("POST", "/v1/tokens", { body });
    form.draft.drop();
    setCreated(data);
  };
  return (
    <FormScreen
      form={form}
      label="New token"
      lede="It is shown once, when it is there. Only its digest is stored."
      send={create}
      act="Create it"
      leave={linkTo(["tokens"])}
    >
      <FieldGroup title="Whose it is">
        <TextField
          label="Name"
          {...form.fieldOf("name")}
          hint="For people: who uses it. The audit shows it."
          placeholder="shop backend"
        />
        <ChoiceField label="Expires" {...form.fieldOf("days")} choices={LIVES} />
      </FieldGroup>
      <FieldGroup title="What it may do">
        <Field label="Scopes" role="group" error={form.fieldOf("scopes").error}>
          {() =>
            SCOPES.map(([scope, what]) => (
              <label key={scope} class="check">
                <input
                  type="checkbox"
                  checked={scopes.includes(scope)}
                  onChange={(event) => {
                    const others = scopes.filter((one) => one !== scope);
                    form.fieldOf("scopes").set(event.currentTarget.checked ? [...others, scope] : others);
                  }}
                />
                <span>
                  <code>{scope}</code> {what}
                </span>
              </label>
            ))
          }
        </Field>
        <TextField
          label="Only for"
          {...form.fieldOf("application")}
          hint="One application. Left empty: all of them."
          placeholder="billing"
        />
      </FieldGroup>
    </FormScreen>
  );
}
