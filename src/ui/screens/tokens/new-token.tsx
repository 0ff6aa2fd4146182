import { useState } from "preact/hooks";
import type { ScopeName, TokenWithSecret } from "../../../domain/token.ts";
import { askJson } from "../../api/request.ts";
import { useSending } from "../../api/sending.ts";
import { useDraft } from "../../api/drafts.ts";
import { SecretOnce } from "../../parts/copy.tsx";
import { CameBack, ChoiceField, FieldGroup, Form, TextField, Wrong } from "../../parts/form.tsx";
import { useRecordName } from "../../shell/record-name.ts";
import { linkTo } from "../../shell/route.ts";

const SCOPES: readonly (readonly [name: ScopeName, what: string])[] = [
  ["publish", "publishes events"],
  ["read", "sees everything but tokens, audit and doctor"],
  ["listen", "claims deliveries of pull subscriptions"],
  ["write", "changes actions and subscriptions, sends again; holds listen"],
  ["admin", "may do everything"],
];

const DAY_MS = 86_400_000;
const LIVES = {
  never: ["Never", null],
  day: ["In a day", DAY_MS],
  month: ["In 30 days", 30 * DAY_MS],
  year: ["In a year", 365 * DAY_MS],
} as const satisfies Readonly<Record<string, readonly [string, number | null]>>;
type Life = keyof typeof LIVES;

const NEW_TOKEN = {
  name: "",
  scopes: ["publish"] as readonly ScopeName[],
  application: "",
  life: "year" as Life,
};

/** A form for a new token, which is shown once. */
export function NewTokenForm() {
  const draft = useDraft(linkTo(["tokens", "new"]), () => NEW_TOKEN);
  const { name, scopes, application, life } = draft.fields;
  const { isSending, failure, send } = useSending();
  const [created, setCreated] = useState<TokenWithSecret | undefined>();
  useRecordName("New");
  if (created !== undefined) return <Created token={created} />;
  const limit = application.trim();
  const create = async (): Promise<void> => {
    const [, lifeMs] = LIVES[life];
    const body = {
      name: name.trim(),
      scopes: SCOPES.filter(([scope]) => scopes.includes(scope)).map(([scope]) =>
        limit === "" ? scope : `${scope}:${limit}`,
      ),
      ...(lifeMs === null ? {} : { expires_at: new Date(Date.now() + lifeMs).toISOString() }),
    };
    const { data } = await askJson<TokenWithSecret>("/v1/tokens", { method: "POST", body });
    draft.drop();
    setCreated(data);
  };
  const { field: at } = failure?.details ?? {};
  const wrongField = typeof at === "string" ? at : "";
  const errorAt = (field: string): string | undefined =>
    wrongField.startsWith(field) ? failure?.message : undefined;
  const isElsewhere = !/^(name|scopes)/.test(wrongField);
  return (
    <section class="stack narrow" aria-label="New token">
      <header class="head">
        <div class="what">
          <h1>New token</h1>
          <p class="lede">It is shown once, when it is there. Only its digest is stored.</p>
        </div>
      </header>
      <CameBack draft={draft} />
      <Form send={() => send(create)}>
        <FieldGroup title="Whose it is">
          <TextField
            label="Name"
            value={name}
            set={(text) => draft.change({ name: text })}
            error={errorAt("name")}
            hint="For people: who uses it. The audit shows it."
            placeholder="shop backend"
          />
          <ChoiceField<Life>
            label="Expires"
            value={life}
            choices={(Object.keys(LIVES) as Life[]).map((one) => [one, LIVES[one][0]] as const)}
            set={(choice) => draft.change({ life: choice })}
          />
        </FieldGroup>
        <FieldGroup title="What it may do">
          <div class="form-row" role="group" aria-label="Scopes">
            <span class="label">Scopes</span>
            <div>
              {SCOPES.map(([scope, what]) => (
                <label key={scope} class="check">
                  <input
                    type="checkbox"
                    checked={scopes.includes(scope)}
                    onChange={(event) => {
                      const others = scopes.filter((one) => one !== scope);
                      draft.change({ scopes: event.currentTarget.checked ? [...others, scope] : others });
                    }}
                  />
                  <span>
                    <code>{scope}</code> {what}
                  </span>
                </label>
              ))}
              <Wrong text={errorAt("scopes")} />
            </div>
          </div>
          <TextField
            label="Only for"
            value={application}
            set={(text) => draft.change({ application: text })}
            hint="One application. Left empty: all of them."
            placeholder="billing"
          />
        </FieldGroup>
        <div class="form-acts">
          <button class="btn main" disabled={isSending}>
            Create it
          </button>
          <a class="btn" href={linkTo(["tokens"])} onClick={draft.drop}>
            Cancel
          </a>
          {isElsewhere && <Wrong text={failure?.message} />}
        </div>
      </Form>
    </section>
  );
}

function Created({ token }: { readonly token: TokenWithSecret }) {
  const [isKept, setKept] = useState(false);
  return (
    <section class="stack narrow" aria-label="New token">
      <h1>{token.name} is created</h1>
      <div class="panel pad stack">
        <SecretOnce
          secret={token.token}
          what="the token"
          otherwise="To have one then, create another and revoke this one."
          isKept={isKept}
          keep={() => setKept(true)}
        >
          <p class="soft">
            It may do: {token.scopes.join(", ")}. Keep it where its program reads it. It is shown this once.
          </p>
        </SecretOnce>
      </div>
      <div class="form-acts">
        {isKept ? (
          <a class="btn" href={linkTo(["tokens"])}>
            All tokens
          </a>
        ) : (
          <button class="btn main" onClick={() => setKept(true)}>
            I have kept it
          </button>
        )}
      </div>
    </section>
  );
}
