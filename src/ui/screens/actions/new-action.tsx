import type { Action, WarningMeta } from "../../../domain/action.ts";
import { heldFor } from "../../api/identity.ts";
import { send, ApiError } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { useActing } from "../../parts/acting.ts";
import { Head } from "../../parts/layout.tsx";
import { dropDraft, useDraft } from "../../api/drafts.ts";
import { shellWord } from "../../../domain/formats.ts";
import { Command } from "../../parts/copy.tsx";
import { whyNoObject } from "../../parts/json-tokens.ts";
import { AreaField, CameBack, ChoiceField, FieldGroup, Form, FormEnd, TextField } from "../../parts/form.tsx";
import { goTo, linkTo } from "../../parts/route.ts";
import { say } from "../../parts/toast.tsx";
import { type ReadAction, readAction } from "../../records/exact-record.ts";
import { actionPath, checkedSchema, checkForm } from "./read-action.ts";

const FIRST_SCHEMA = `{
  "type": "object",
  "required": ["id"],
  "properties": {
    "id": { "type": "string" }
  }
}`;
/** What the form has a place for. */
const KNOWN = ["action", "application", "schemata"];
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
      schema={(like === undefined ? undefined : checkedSchema(like)) ?? model?.exactText ?? FIRST_SCHEMA}
      like={like}
    />
  );
}

/** The application of a token which may write for one only. */
function ownApplication(): string {
  const [first, ...others] = heldFor("write").filter((one) => one !== undefined);
  return others.length === 0 ? (first ?? "") : "";
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
  const { isBusy, failure, errorAt, act } = useActing();
  const fromPayload = given === "payload" && whyNoObject(payload) === undefined;
  const text = fromPayload ? JSON.stringify(schemaOfPayload(JSON.parse(payload)), null, 2) : schema;
  const create = async (): Promise<void> => {
    const unreadable = whyNoObject(given === "payload" ? payload : schema);
    if (unreadable !== undefined) throw new ApiError(422, unreadable, { field: "schemata" });
    const names = JSON.stringify({ action: name.trim(), application: application.trim() });
    const { data, meta } = await send<Action, WarningMeta>("POST", "/v1/actions", {
      text: `${names.slice(0, -1)},"schemata":${text}}`,
    });
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
    <Form send={() => void act(create)}>
      <Head
        title={props.like === undefined ? "Create an action" : `Create an action after ${props.like}`}
        lede="An action is a kind of event. What is published to it must conform to its schema."
      />
      <CameBack draft={draft} />
      <FieldGroup title="Name">
        <TextField
          label="Action"
          {...draft.of("name")}
          required
          placeholder="order.created"
          hint="Words with dots between them. It cannot be changed."
          error={errorAt("action")}
        />
        <TextField
          label="Application"
          {...draft.of("application")}
          required
          placeholder="shop"
          hint="Who owns it, and publishes."
          error={errorAt("application")}
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
          <AreaField label="Schema" {...draft.of("schema")} rows={16} error={errorAt("schemata")} />
        ) : (
          <>
            <AreaField
              label="Payload"
              {...draft.of("payload")}
              rows={8}
              error={whyNoObject(payload) ?? errorAt("schemata")}
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
      <FormEnd
        wrong={failure}
        fields={KNOWN}
        isBusy={isBusy}
        act="Create it"
        leave="#/actions"
        drop={draft.drop}
      />
      <Command
        text={`evreg actions create ${name.trim() === "" ? "NAME" : shellWord(name.trim())} --application ${application.trim() === "" ? "APP" : shellWord(application.trim())} --schema schema.json`}
      />
    </Form>
  );
}

type Json = Readonly<Record<string, unknown>>;

/** Levels that are looked into: as deep as a schema may say. */
const DEEPEST = 20;

/** A schema that a payload conforms to, to begin with: its members, all of them required, and their types. */
function schemaOfPayload(value: unknown, depth = 0): Json {
  if (depth > DEEPEST) return {};
  if (value === null) return { type: "null" };
  if (Array.isArray(value)) {
    const kinds = new Map(
      value.map((item) => {
        const schema = schemaOfPayload(item, depth + 1);
        return [JSON.stringify(schema), schema];
      }),
    );
    const items = [...kinds.values()];
    if (items.length === 0) return { type: "array" };
    return { type: "array", items: items.length === 1 ? items[0] : { anyOf: items } };
  }
  if (typeof value === "object") {
    const members = Object.entries(value).map(
      ([name, inner]) => [name, schemaOfPayload(inner, depth + 1)] as const,
    );
    const names = members.map(([name]) => name);
    return {
      type: "object",
      ...(names.length === 0 ? {} : { required: names }),
      properties: Object.fromEntries(members),
    };
  }
  if (typeof value === "number") return { type: Number.isInteger(value) ? "integer" : "number" };
  return { type: typeof value };
}
