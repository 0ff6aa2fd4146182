import type { Action } from "../../../domain/action.ts";
import { retryDefaults } from "../../api/identity.ts";
import { useResource } from "../../api/resource.ts";
import { AreaField, ChoiceField, FieldGroup, TextField } from "../../parts/form.tsx";
import type { Draft } from "./draft.ts";
import { FilterTrial } from "./filter-trial.tsx";
import { formOf } from "./plain-settings.ts";
import { draftedRetries, waitsText } from "./retry-words.ts";

/** What is wrong, and with which field; without a field, with all of it. */
export interface Wrong {
  readonly field: keyof Draft | undefined;
  readonly message: string;
}

interface FormProps {
  readonly draft: Draft;
  readonly change: (change: Partial<Draft>) => void;
  readonly wrong: Wrong | undefined;
  readonly isNew: boolean;
}

/** The server names one wrong field at a time; those that are empty are seen here. */
const REQUIRED: ReadonlySet<keyof Draft> = new Set(["application", "subscription", "action", "handler"]);

/** All that a subscription can be told, in groups. */
export function SettingsFields(props: FormProps) {
  const { draft, change, wrong, isNew } = props;
  const actions = useResource<readonly Action[]>("/v1/actions").answer?.data ?? [];
  const text = (name: keyof Draft) => ({
    value: draft[name],
    set: (value: string) => change({ [name]: value }),
    error:
      wrong?.field === name
        ? wrong.message
        : wrong?.field !== undefined && REQUIRED.has(name) && draft[name].trim() === ""
          ? "It must not be empty."
          : undefined,
  });
  const isPush = draft.mode === "push";
  const usual = retryDefaults();
  return (
    <>
      <FieldGroup title="What goes where">
        {isNew && <TextField label="Application" {...text("application")} required placeholder="billing" />}
        {isNew && (
          <TextField
            label="Name"
            {...text("subscription")}
            required
            placeholder="invoices"
            hint="What the application calls it."
          />
        )}
        <TextField
          label="Action"
          {...text("action")}
          required
          placeholder="order.created"
          list={actions.map(({ action }) => action)}
          hint={
            <>
              A name; or <code>order.*</code> for all actions beneath order, also later ones; or{" "}
              <code>*</code>.
            </>
          }
        />
        {isNew && (
          <ChoiceField
            label="Delivery"
            value={draft.mode}
            error={text("mode").error}
            choices={[
              ["push", "evreg sends it"],
              ["pull", "consumers claim it"],
            ]}
            set={(mode) => change({ mode })}
            hint={
              isPush
                ? "Each event is posted to the handler."
                : "Programs of yours ask for deliveries, with evreg listen or the client. This cannot be changed later."
            }
          />
        )}
        {isPush && (
          <TextField
            label="Handler"
            {...text("handler")}
            required
            type="url"
            placeholder="https://hooks.example.com/evreg"
            hint="The address that each event is posted to."
          />
        )}
      </FieldGroup>
      <FieldGroup title="Which events">
        <AreaField
          label="Filter"
          {...text("filter")}
          rows={5}
          placeholder={'{"properties": {"country": {"const": "FR"}}, "required": ["country"]}'}
          hint="A JSON Schema. Events whose payload does not conform to it are not sent."
        />
        <FilterTrial key={`${draft.action}\n${draft.filter}`} action={draft.action} filter={draft.filter} />
      </FieldGroup>
      <FieldGroup title="When it fails">
        <TextField
          label="Retries"
          {...text("max_retries")}
          mode="numeric"
          placeholder={String(usual.max_retries)}
          hint={<>0 to 20, after the first attempt. {draftedRetries(draft, usual)}</>}
        />
        <TextField
          label="Waits"
          {...text("retry_schedule")}
          placeholder={waitsText(usual.retry_schedule?.length ?? usual.max_retries, usual.retry_schedule)}
          hint={
            <>
              Before each retry, such as <code>0s, 30s, 10m, 2h</code>; the last one goes for all that follow.
            </>
          }
        />
      </FieldGroup>
      <FieldGroup title="Order and pace">
        <ChoiceField
          label="Order"
          value={draft.order}
          error={text("order").error}
          choices={[
            ["any", "As they come due"],
            ["all", "As published"],
            ["key", "As published, for each key"],
          ]}
          set={(order) => change({ order })}
          hint={draft.order === "any" ? undefined : "One delivery at a time. The next one waits for it."}
        />
        {draft.order === "key" && (
          <TextField
            label="Key"
            {...text("key")}
            placeholder="/customer/id"
            hint="A JSON Pointer into the payload."
          />
        )}
        {draft.order !== "any" && (
          <ChoiceField
            label="Retries used up"
            value={draft.on_exhausted}
            error={text("on_exhausted").error}
            choices={[
              ["block", "Try on, those behind wait"],
              ["skip", "It has failed, the next is sent"],
            ]}
            set={(choice) => change({ on_exhausted: choice })}
          />
        )}
        <PlainFields fields={formOf(draft.mode, "Order and pace")} text={text} />
      </FieldGroup>
      {isPush && (
        <FieldGroup title="What is sent along">
          <PlainFields fields={formOf(draft.mode, "What is sent along")} text={text} />
          <ChoiceField
            label="Bearer"
            value={draft.bearer}
            error={text("bearer").error}
            choices={[
              ["secret", "The secret"],
              ["own", "A value of its own"],
              ["none", "None"],
            ]}
            set={(bearer) => change({ bearer })}
            hint="What Authorization: Bearer carries. Each request is signed with the secret in any case."
          />
          {draft.bearer === "own" && (
            <TextField
              label="Its value"
              {...text("bearer_token")}
              secret
              placeholder={isNew ? "" : "as it is"}
              hint="It is never shown again."
            />
          )}
        </FieldGroup>
      )}
    </>
  );
}

/** Fields as their descriptions have them. */
function PlainFields({
  fields,
  text,
}: {
  readonly fields: ReturnType<typeof formOf>;
  readonly text: (name: keyof Draft) => Pick<Parameters<typeof TextField>[0], "value" | "set" | "error">;
}) {
  return (
    <>
      {fields.map(({ name, title = name, kind, schema, unset, form }) => {
        const about = {
          label: title,
          placeholder: form?.example ?? unset ?? "",
          hint: form?.hint ?? String(schema["description"]),
        };
        return kind.hasLines ? (
          <AreaField key={name} {...about} {...text(name)} rows={2} />
        ) : (
          <TextField key={name} {...about} {...text(name)} mode={kind.inputMode} />
        );
      })}
    </>
  );
}
