import { useState } from "preact/hooks";
import type { Action } from "../../../domain/action.ts";
import { type Event, type PageMeta, SEARCH_LIMITS } from "../../../domain/event.ts";
import type { Subscription, SubscriptionWithSecret } from "../../../domain/subscription.ts";
import { refuseConflict } from "../../api/drafts.ts";
import { ApiError, askJson, send, useResource, withQuery } from "../../api/resource.ts";
import { maySome, retryDefaults } from "../../api/session.ts";
import { say, useActing } from "../../parts/acting.ts";
import {
  AreaField,
  ChoiceField,
  Field,
  FieldGroup,
  FormScreen,
  type KeptForm,
  TextField,
  useForm,
} from "../../parts/form.tsx";
import { Button } from "../../parts/layout.tsx";
import { goTo, linkTo, useRecordName } from "../../parts/route.ts";
import { Empty } from "../../parts/states.tsx";
import { Time } from "../../parts/values.tsx";
import { type ReadSubscription, readSubscription } from "../../records/exact-record.ts";
import { SubscriptionName } from "../../records/subscription.tsx";
import { SubscriptionSecret } from "./secrets.tsx";
import {
  BEARERS,
  changeBody,
  type Draft,
  draftedRetries,
  draftOf,
  EMPTY_DRAFT,
  formOf,
  newBody,
  objectText,
  waitsText,
} from "./settings.ts";

function useSettingsForm(name: string, start: () => Draft): KeptForm<Draft> {
  return useForm(name, start, {
    kept: (fields) => ({ ...fields, bearer_token: "" }),
    required: ["application", "subscription", "action", "handler"],
    names: { ordered: "key" },
  });
}

/** A form for a new subscription. Its secret is shown once, when it is there. */
export function NewSubscriptionForm({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { application = "", action = "" } = query;
  const form = useSettingsForm(linkTo(["subscriptions", "new"], { application, action }), () => ({
    ...EMPTY_DRAFT,
    application,
    action,
  }));
  useRecordName("New");
  const [created, setCreated] = useState<SubscriptionWithSecret | undefined>();
  if (!maySome("listen")) {
    return (
      <Empty screen="New subscription" title="This token may not create subscriptions">
        It needs the scope write.
      </Empty>
    );
  }
  if (created !== undefined) {
    const { rowid, mode } = created;
    return (
      <SubscriptionSecret
        title={<SubscriptionName record={created} after=" is created" />}
        record={created}
        next={
          <>
            {mode === "push" && (
              <Button look="main" to={linkTo(["subscriptions", rowid, "test"])} label="Test its handler" />
            )}
            <Button to={linkTo(["subscriptions", rowid])} label="Open it" />
          </>
        }
      />
    );
  }
  const create = async (): Promise<void> => {
    const text = newBody(form.draft.fields);
    setCreated((await send<SubscriptionWithSecret>("POST", "/v1/subscriptions", { text })).data);
    form.draft.drop();
    scrollTo({ top: 0 });
  };
  return (
    <FormScreen
      form={form}
      label="New subscription"
      lede="It gets the events of its action that are published from now on."
      send={create}
      act="Create it"
      leave={linkTo(["subscriptions"])}
    >
      <SettingsFields form={form} isNew />
    </FormScreen>
  );
}

/** The settings of a subscription, to change. Only what was changed is sent, so that others may change the rest. */
export function EditSubscription({ subscription }: { readonly subscription: ReadSubscription }) {
  const { rowid, application, subscription: name } = subscription;
  const form = useSettingsForm(linkTo(["subscriptions", rowid, "edit"]), () => draftOf(subscription));
  const { draft } = form;
  const leave = linkTo(["subscriptions", rowid]);
  const save = async (): Promise<void> => {
    const text = changeBody(draft.fields, draft.before);
    if (text !== undefined) {
      refuseConflict(draft, draftOf((await readSubscription(`/v1/subscriptions/${rowid}`)).data));
      await send<Subscription>("PUT", `/v1/subscriptions/${rowid}`, { text });
      say(`${application}/${name} is changed.`);
    }
    draft.drop();
    goTo(leave);
  };
  return (
    <FormScreen
      form={form}
      label={`Settings of ${application}/${name}`}
      title={<SubscriptionName before="Settings of " record={subscription} />}
      send={save}
      act="Save"
      leave={leave}
    >
      <SettingsFields form={form} isNew={false} />
    </FormScreen>
  );
}

/** All settings of a subscription, in groups. */
function SettingsFields({ form, isNew }: { readonly form: KeptForm<Draft>; readonly isNew: boolean }) {
  const { fieldOf, draft } = form;
  const { mode, action, filter, order, bearer } = draft.fields;
  const actions = useResource<readonly Action[]>("/v1/actions").answer?.data ?? [];
  const isPush = mode === "push";
  const usual = retryDefaults();
  return (
    <>
      <FieldGroup title="What goes where">
        {isNew && <TextField label="Application" {...fieldOf("application")} placeholder="billing" />}
        {isNew && (
          <TextField
            label="Name"
            {...fieldOf("subscription")}
            placeholder="invoices"
            hint="What the application calls it."
          />
        )}
        <TextField
          label="Action"
          {...fieldOf("action")}
          placeholder="order.created"
          list={actions.map(({ action: name }) => name)}
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
            {...fieldOf("mode")}
            choices={{ push: "evreg sends it", pull: "consumers claim it" }}
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
            {...fieldOf("handler")}
            type="url"
            placeholder="https://hooks.example.com/evreg"
            hint="The address that each event is posted to."
          />
        )}
      </FieldGroup>
      <FieldGroup title="Which events">
        <AreaField
          label="Filter"
          {...fieldOf("filter")}
          rows={5}
          placeholder={'{"properties": {"country": {"const": "FR"}}, "required": ["country"]}'}
          hint="A JSON Schema. Events whose payload does not conform to it are not sent."
        />
        <FilterTrial key={`${action}\n${filter}`} action={action.trim()} filter={filter} />
      </FieldGroup>
      <FieldGroup title="When it fails">
        <TextField
          label="Retries"
          {...fieldOf("max_retries")}
          mode="numeric"
          placeholder={String(usual.max_retries)}
          hint={<>0 to 20, after the first attempt. {draftedRetries(draft.fields, usual)}</>}
        />
        <TextField
          label="Waits"
          {...fieldOf("retry_schedule")}
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
          {...fieldOf("order")}
          choices={{ any: "As they come due", all: "As published", key: "As published, for each key" }}
          hint={order === "any" ? undefined : "One delivery at a time. The next one waits for it."}
        />
        {order === "key" && (
          <TextField
            label="Key"
            {...fieldOf("key")}
            placeholder="/customer/id"
            hint="A JSON Pointer into the payload."
          />
        )}
        {order !== "any" && (
          <ChoiceField
            label="Retries used up"
            {...fieldOf("on_exhausted")}
            choices={{ block: "Try on, those behind wait", skip: "It has failed, the next is sent" }}
          />
        )}
        {plainFields(form, "Order and pace")}
      </FieldGroup>
      {isPush && (
        <FieldGroup title="What is sent along">
          {plainFields(form, "What is sent along")}
          <ChoiceField
            label="Bearer"
            {...fieldOf("bearer")}
            choices={BEARERS}
            hint="What Authorization: Bearer carries. Each request is signed with the secret in any case."
          />
          {bearer === "own" && (
            <TextField
              label="Its value"
              {...fieldOf("bearer_token")}
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

/** The fields of a group that are as their descriptions have them. */
const plainFields = ({ fieldOf, draft }: KeptForm<Draft>, group: string) =>
  formOf(draft.fields.mode, group).map(({ name, title = name, kind, schema, unset = "", ...field }) => {
    const { hint = String(schema["description"]) } = field;
    const [example] = (schema["examples"] ?? []) as readonly unknown[];
    const placeholder = kind.hasLines && example !== undefined ? kind.write(example) : unset;
    const about = { label: title, placeholder, hint };
    return kind.hasLines ? (
      <AreaField key={name} {...about} {...fieldOf(name)} rows={2} />
    ) : (
      <TextField key={name} {...about} {...fieldOf(name)} mode={kind.inputMode} />
    );
  });

const TRIED_EVENTS = 50;

type Listed = Pick<Event, "rowid" | "timestamped">;

/**
 * What a filter does to the last events: how many were tried and would be sent, when the oldest of them was published, and
 * the search that finds those that pass.
 */
async function tryFilter(action: string, filter: string) {
  const where = JSON.stringify(JSON.parse(objectText("filter", filter)));
  const { whereLength } = SEARCH_LIMITS;
  if (where.length > whereLength) {
    throw new ApiError(422, `Filters of more than ${whereLength} characters cannot be tried here.`);
  }
  const wanted = { action, limit: TRIED_EVENTS, payloads: false };
  const { data: last } = await askJson<readonly Listed[]>(withQuery("/v1/events", wanted));
  const oldest = last.at(-1);
  if (oldest === undefined) return { tried: 0, passing: 0, since: undefined, warnings: [], where };
  const { data: passing, meta } = await askJson<readonly Listed[], PageMeta>(
    withQuery("/v1/events", { ...wanted, where, from: oldest.timestamped, after: last[0]!.rowid + 1 }),
  );
  return {
    tried: last.length,
    passing: passing.length,
    since: oldest.timestamped,
    warnings: (meta?.warnings ?? []).map(({ pointer, message }) => `${pointer || "The filter"} ${message}`),
    where,
  };
}

/** Tries a filter on the last events before anything depends on it. Another filter is another component. */
function FilterTrial({ action, filter }: { readonly action: string; readonly filter: string }) {
  const [shown, setShown] = useState<Awaited<ReturnType<typeof tryFilter>> | undefined>();
  const { isBusy, failure, act } = useActing();
  if (filter.trim() === "" || action === "") return null;
  const run = async (): Promise<void> => setShown(await tryFilter(action, filter));
  return (
    <Field label="Try it" role="group" error={failure?.message}>
      {() => (
        <div class="stack tight" aria-live="polite">
          <div class="row">
            <Button run={() => act(run)} disabled={isBusy} label={`On the last ${TRIED_EVENTS} events`} />
            {shown?.tried === 0 && <span>No event of {action} is stored to try it on.</span>}
            {shown?.since !== undefined && (
              <>
                <span>
                  <b class="strong">
                    {shown.passing} of {shown.tried}
                  </b>{" "}
                  since <Time at={shown.since} /> would be sent
                </span>
                <Button
                  look="bare"
                  to={linkTo(["events"], { action, where: shown.where })}
                  label="See such events"
                />
              </>
            )}
          </div>
          {shown?.warnings.map((warning) => (
            <p key={warning} class="warn-text">
              {warning}
            </p>
          ))}
        </div>
      )}
    </Field>
  );
}
