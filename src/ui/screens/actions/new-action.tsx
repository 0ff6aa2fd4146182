import type { Action, SchemaWarning } from "../../../domain/action.ts";
import { identity } from "../../api/identity.ts";
import { ApiError } from "../../api/api-error.ts";
import { askJson } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { useSending } from "../../api/sending.ts";
import { dropDraft, useDraft } from "../../api/drafts.ts";
import { Command, quoted } from "../../parts/copy.tsx";
import { whyNoObject } from "../../parts/json-tokens.ts";
import { AreaField, CameBack, ChoiceField, FieldGroup, Form, TextField } from "../../parts/form.tsx";
import { Say } from "../../parts/states.tsx";
import { goTo, linkTo } from "../../shell/route.ts";
import { say } from "../../shell/toast.tsx";
import { checkedSchema, checkForm } from "./checked-schema.ts";
import { actionPath, type ReadAction, readAction } from "./read-action.ts";
import { schemaOfPayload } from "./schema-of-payload.ts";

const FIRST_SCHEMA = `{
  "type": "object",
  "required": ["id"],
  "properties": {
    "id": { "type": "string" }
  }
}`;
/** What the form has a place for. */
const KNOWN: ReadonlySet<unknown> = new Set(["action", "application", "schemata"]);
const FIRST_PAYLOAD = `{ "id": "o-1", "total": 12.5 }`;

/** Registers an action. The address says after which other one it is made: `like`. */
export function NewActionForm({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { create = "", like } = query;
  const other = useResource<ReadAction>(like === undefined ? undefined : actionPath(like), {
    read: readAction,
  });
  if (like !== undefined && other.answer === undefined && other.error === undefined) return null;
  const model = other.answer?.data;
  return (
    <ActionForm
      form={linkTo(["actions"], { create, like })}
      name={create === "one" ? "" : create}
      application={model?.application ?? query["application"] ?? ownApplication()}
      schema={(like === undefined ? undefined : checkedSchema(like)) ?? model?.schemaText ?? FIRST_SCHEMA}
      like={like}
    />
  );
}

/** That of a token which may write for one only. */
function ownApplication(): string {
  const scopes = identity.value?.scopes ?? [];
  const owned = scopes.flatMap((scope) => /^(?:write|admin):(.+)$/.exec(scope)?.[1] ?? []);
  return owned.length === 1 ? owned[0]! : "";
}

function ActionForm(props: {
  readonly form: string;
  readonly name: string;
  readonly application: string;
  readonly schema: string;
  readonly like: string | undefined;
}) {
  const draft = useDraft(props.form, () => ({
    name: props.name,
    application: props.application,
    given: "schema" as "schema" | "payload",
    schema: props.schema,
    payload: FIRST_PAYLOAD,
  }));
  const { name, application, given, schema, payload } = draft.fields;
  const { isSending, failure, send } = useSending();
  const fromPayload = given === "payload" && whyNoObject(payload) === undefined;
  const text = fromPayload ? JSON.stringify(schemaOfPayload(JSON.parse(payload)), null, 2) : schema;
  const wrongField = failure?.details["field"];
  const errorOf = (field: string): string | undefined =>
    wrongField === field ? failure?.message : undefined;
  const create = async (): Promise<void> => {
    const unreadable = whyNoObject(given === "payload" ? payload : schema);
    if (unreadable !== undefined) throw new ApiError(422, unreadable, { field: "schemata" });
    const names = JSON.stringify({ action: name.trim(), application: application.trim() });
    const { data, meta } = await askJson<Action, { readonly warnings: readonly SchemaWarning[] }>(
      "/v1/actions",
      {
        method: "POST",
        text: `${names.slice(0, -1)},"schemata":${text}}`,
      },
    );
    draft.drop();
    if (props.like !== undefined) dropDraft(checkForm(props.like));
    const [warning] = meta?.warnings ?? [];
    say(
      warning === undefined
        ? `${data.action} is registered.`
        : `${data.action} is registered. Beware: ${warning.pointer} ${warning.message}`,
    );
    goTo(linkTo(["actions", data.action]));
  };
  return (
    <Form send={() => send(create)}>
      <header class="head">
        <div class="what">
          <h1>{props.like === undefined ? "Create an action" : `Create an action after ${props.like}`}</h1>
          <p class="lede">
            An action is a kind of event. What is published to it must conform to its schema.
          </p>
        </div>
      </header>
      <CameBack draft={draft} />
      {failure !== undefined && !KNOWN.has(wrongField) && (
        <Say state="failed" title="Not created">
          {failure.message} What you typed is kept.
        </Say>
      )}
      <FieldGroup title="Name">
        <TextField
          label="Action"
          value={name}
          set={(next) => draft.change({ name: next })}
          required
          placeholder="order.created"
          hint="Words with dots between them. It cannot be changed."
          error={errorOf("action")}
        />
        <TextField
          label="Application"
          value={application}
          set={(next) => draft.change({ application: next })}
          required
          placeholder="shop"
          hint="Who owns it, and publishes."
          error={errorOf("application")}
        />
      </FieldGroup>
      <FieldGroup title="Schema">
        <ChoiceField
          label="From"
          value={given}
          choices={[
            ["schema", "a JSON Schema (Draft 7)"],
            ["payload", "a sample payload"],
          ]}
          set={(next) => draft.change({ given: next })}
        />
        {given === "schema" ? (
          <AreaField
            label="Schema"
            value={schema}
            set={(next) => draft.change({ schema: next })}
            rows={16}
            error={errorOf("schemata")}
          />
        ) : (
          <>
            <AreaField
              label="Payload"
              value={payload}
              set={(next) => draft.change({ payload: next })}
              rows={8}
              error={whyNoObject(payload) ?? errorOf("schemata")}
            />
            <AreaField
              label="Its schema"
              value={text}
              set={(next) => draft.change({ schema: next, given: "schema" })}
              rows={12}
              hint="Every member is required. Change it, and it is yours."
            />
          </>
        )}
      </FieldGroup>
      <div class="form-acts">
        <button class="btn main" disabled={isSending}>
          Create it
        </button>
        <a class="btn" href="#/actions" onClick={draft.drop}>
          Cancel
        </a>
      </div>
      <Command
        text={`evreg actions create ${name.trim() === "" ? "NAME" : quoted(name.trim())} --application ${application.trim() === "" ? "APP" : quoted(application.trim())} --schema schema.json`}
      />
    </Form>
  );
}
