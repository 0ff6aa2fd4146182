import { Button } from "../../parts/button.tsx";
import { useState } from "preact/hooks";
import type { ScopeName, TokenWithSecret } from "../../../domain/token.ts";
import { send } from "../../api/request.ts";
import { useActing } from "../../parts/acting.ts";
import { Head } from "../../parts/layout.tsx";
import { useDraft } from "../../api/drafts.ts";
import { SecretOnce } from "../../parts/copy.tsx";
import { CameBack, ChoiceField, FieldGroup, Form, FormEnd, TextField, Wrong } from "../../parts/form.tsx";
import { useRecordName, linkTo } from "../../parts/route.ts";

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
  const { isBusy, failure, errorAt, act } = useActing();
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
    const [, lifeMs] = LIVES[life];
    const body = {
      name: name.trim(),
      scopes: SCOPES.filter(([scope]) => scopes.includes(scope)).map(([scope]) =>
        limit === "" ? scope : `${scope}:${limit}`,
      ),
      ...(lifeMs === null ? {} : { expires_at: new Date(Date.now() + lifeMs).toISOString() }),
    };
    const { data } = await send<TokenWithSecret>("POST", "/v1/tokens", { body });
    draft.drop();
    setCreated(data);
  };
  return (
    <section class="stack narrow" aria-label="New token">
      <Head title="New token" lede="It is shown once, when it is there. Only its digest is stored." />
      <CameBack draft={draft} />
      <Form send={() => void act(create)}>
        <FieldGroup title="Whose it is">
          <TextField
            label="Name"
            {...draft.of("name")}
            error={errorAt("name")}
            hint="For people: who uses it. The audit shows it."
            placeholder="shop backend"
          />
          <ChoiceField<Life>
            label="Expires"
            {...draft.of("life")}
            choices={(Object.keys(LIVES) as Life[]).map((one) => [one, LIVES[one][0]] as const)}
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
            {...draft.of("application")}
            hint="One application. Left empty: all of them."
            placeholder="billing"
          />
        </FieldGroup>
        <FormEnd
          wrong={failure}
          fields={["name", "scopes"]}
          isBusy={isBusy}
          act="Create it"
          leave={linkTo(["tokens"])}
          drop={draft.drop}
        />
      </Form>
    </section>
  );
}
