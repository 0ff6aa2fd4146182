import { type Action, isLooser, type WarningMeta } from "../../../domain/action.ts";
import { shellWord } from "../../../domain/formats.ts";
import { COMPATIBILITY_MODES } from "../../../model/action.ts";
import { dropDraft, refuseConflict } from "../../api/drafts.ts";
import { ApiError, askJson, send, useResource } from "../../api/resource.ts";
import { heldFor, may } from "../../api/session.ts";
import { type Question, say, sayError, useActing } from "../../parts/acting.ts";
import { Command } from "../../parts/copy.tsx";
import {
  AreaField,
  CameBack,
  ChoiceField,
  FieldGroup,
  FormScreen,
  TextField,
  useForm,
} from "../../parts/form.tsx";
import { whyNoObject } from "../../parts/json-tokens.ts";
import { Button } from "../../parts/layout.tsx";
import { goTo, linkTo } from "../../parts/route.ts";
import { Failed } from "../../parts/states.tsx";
import { type ReadAction, readAction } from "../../records/exact-record.ts";
import { actionPath, checkedSchema, checkForm, type PartProps, PROTECTED } from "./action-parts.tsx";

const FIRST_SCHEMA = `{
  "type": "object",
  "required": ["id"],
  "properties": {
    "id": { "type": "string" }
  }
}`;
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
  const form = useForm(
    props.form,
    () => ({
      action: props.name,
      application: props.application,
      basis: "schema" as "schema" | "payload",
      schemata: props.schema,
      payload: FIRST_PAYLOAD,
    }),
    { required: ["action", "application"] },
  );
  const { fieldOf, draft } = form;
  const { basis, schemata, payload } = draft.fields;
  const [action, application] = [draft.fields.action.trim(), draft.fields.application.trim()];
  const fromPayload = basis === "payload" && whyNoObject(payload) === undefined;
  const text = fromPayload ? JSON.stringify(schemaOfPayload(JSON.parse(payload)), null, 2) : schemata;
  const create = async (): Promise<void> => {
    const unreadable = whyNoObject(basis === "payload" ? payload : schemata);
    if (unreadable !== undefined) throw new ApiError(422, unreadable, { field: "schemata" });
    const { data, meta } = await send<Action, WarningMeta>("POST", "/v1/actions", {
      text: `${JSON.stringify({ action, application }).slice(0, -1)},"schemata":${text}}`,
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
  const command = `evreg actions create ${shellWord(action || "NAME")} --application ${shellWord(application || "APP")} --schema schema.json`;
  return (
    <FormScreen
      form={form}
      label={props.like === undefined ? "Create an action" : `Create an action after ${props.like}`}
      lede="An action is a kind of event. What is published to it must conform to its schema."
      send={create}
      act="Create it"
      leave="#/actions"
      below={<Command text={command} />}
    >
      <FieldGroup title="Name">
        <TextField
          label="Action"
          {...fieldOf("action")}
          placeholder="order.created"
          hint="Words with dots between them. It cannot be changed."
        />
        <TextField
          label="Application"
          {...fieldOf("application")}
          placeholder="shop"
          hint="Who owns it, and publishes."
        />
      </FieldGroup>
      <FieldGroup title="Schema">
        <ChoiceField
          label="From"
          {...fieldOf("basis")}
          choices={{ schema: "a JSON Schema (Draft 7)", payload: "a sample payload" }}
        />
        {basis === "schema" ? (
          <AreaField label="Schema" {...fieldOf("schemata")} rows={16} />
        ) : (
          <>
            <AreaField
              label="Payload"
              {...fieldOf("payload")}
              rows={8}
              error={whyNoObject(payload) ?? fieldOf("schemata").error}
            />
            <AreaField
              label="Its schema"
              value={text}
              set={(next) => draft.change({ schemata: next, basis: "schema" })}
              rows={12}
              hint="Every member is required. Change it, and it is yours."
            />
          </>
        )}
      </FieldGroup>
    </FormScreen>
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
    const texts = value.map((item) => JSON.stringify(schemaOfPayload(item, depth + 1)));
    const kinds = [...new Set(texts)].map((text) => JSON.parse(text) as Json);
    if (kinds.length === 0) return { type: "array" };
    return { type: "array", items: kinds.length === 1 ? kinds[0] : { anyOf: kinds } };
  }
  if (typeof value === "object") {
    const members = Object.entries(value).map(([name, inner]) => [name, schemaOfPayload(inner, depth + 1)]);
    return { type: "object", required: Object.keys(value), properties: Object.fromEntries(members) as Json };
  }
  if (typeof value === "number") return { type: Number.isInteger(value) ? "integer" : "number" };
  return { type: typeof value };
}

/** The fields of the form, by the names that the API has for them. */
const settingsOf = (action: Action) => ({
  compatibility: action.compatibility,
  successor: action.successor ?? "",
});
type Settings = ReturnType<typeof settingsOf>;
const PROTECTED_CHOICES = Object.fromEntries(
  COMPATIBILITY_MODES.map((mode) => [mode, `${PROTECTED[mode]} (${mode})`]),
);

/** Whom changes of the schema must not break, and whether publishing goes on. Only what was changed is sent. */
export function ActionSettings({ action }: PartProps) {
  const { action: name, deprecated, retired } = action;
  const { draft, fieldOf, act, failure, wrong } = useForm(linkTo(["actions", name, "settings"]), () =>
    settingsOf(action),
  );
  const { fields, before } = draft;
  const undoing = useActing(sayError);
  const isChanged = (field: keyof Settings): boolean => fields[field] !== before[field];
  const put = async (change: object): Promise<void> => {
    const { data } = await send<Action>("PUT", actionPath(name), { body: change });
    draft.begin(settingsOf(data));
  };
  const apply = (change: object, done: string, back: object, question?: Question): void =>
    act(async () => {
      const now = settingsOf((await askJson<Action>(actionPath(name))).data);
      refuseConflict(
        draft,
        now,
        (["compatibility", "successor"] as const).filter((field) => field in change),
      );
      await put(change);
      say(done, () => undoing.act(() => put(back)));
    }, question);
  const named = fields.successor.trim() || null;
  const goesOn = (change: object, done: string, question?: Question): void =>
    apply(
      isChanged("successor") ? { ...change, successor: named } : change,
      done,
      { deprecated, retired, successor: action.successor },
      question,
    );
  const retire = (): void =>
    goesOn({ retired: true }, `${name} is retired.`, {
      title: `Retire ${name}?`,
      body: "Publishing is refused with 410 from now on. Stored events can be read, and deliveries go on.",
      act: "Retire it",
      danger: true,
    });
  const { compatibility } = fields;
  const needsAdmin = isLooser(action.compatibility, compatibility) && !may("admin", action.application);
  return (
    <div class="form">
      {wrong === undefined && <Failed error={failure} title="Not changed" />}
      <CameBack draft={draft} />
      <FieldGroup title="Compatibility">
        <ChoiceField
          label="Protect"
          {...fieldOf("compatibility")}
          choices={PROTECTED_CHOICES}
          hint="Whom a change of the schema must not break."
          {...(needsAdmin ? { error: "To protect less than before needs the scope admin." } : {})}
        />
        <div class="form-acts">
          <Button
            look="main"
            run={() =>
              apply({ compatibility }, "Compatibility is changed.", { compatibility: action.compatibility })
            }
            disabled={!isChanged("compatibility") || needsAdmin}
            label="Change it"
          />
        </div>
      </FieldGroup>
      <FieldGroup title={retired ? "Retired" : deprecated ? "Deprecated" : "In force"}>
        <TextField
          label="Successor"
          {...fieldOf("successor")}
          placeholder={`${name}.v2`}
          hint="The action to publish to instead. Publishers are told of it."
        />
        <div class="form-acts">
          {(deprecated || retired) && (
            <>
              <Button
                run={() => goesOn({}, "The successor is changed.")}
                disabled={!isChanged("successor")}
                label="Change the successor"
              />
              <Button
                run={() => goesOn({ deprecated: false, retired: false }, `${name} is in force again.`)}
                label="Put in force again"
              />
            </>
          )}
          {!deprecated && !retired && (
            <Button run={() => goesOn({ deprecated: true }, `${name} is deprecated.`)} label="Deprecate" />
          )}
          {!retired && <Button look="danger" run={retire} label="Retire…" />}
        </div>
      </FieldGroup>
      <Command
        text={`${deprecated ? "evreg actions retire" : "evreg actions deprecate"} ${shellWord(name)}${named === null ? "" : ` --successor ${shellWord(named)}`}`}
      />
    </div>
  );
}
