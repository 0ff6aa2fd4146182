import { shellWord } from "../../../domain/formats.ts";
import type { Replay, ReplayCount, ReplaySelection } from "../../../domain/replay.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { REPLAY_SELECTIONS } from "../../../model/replay.ts";
import { askJson, send, useResource, withQuery } from "../../api/resource.ts";
import { type Question, say } from "../../parts/acting.ts";
import { Command } from "../../parts/copy.tsx";
import { ChoiceField, Field, FormScreen, TextField, useForm } from "../../parts/form.tsx";
import { goTo, linkTo } from "../../parts/route.ts";
import { capital, countText, numberText } from "../../parts/values.tsx";
import { SubscriptionName } from "../../records/subscription.tsx";

const ONE_DAY_MS = 86_400_000;

const MEANS: Readonly<Record<ReplaySelection, string>> = {
  failed: "Those whose delivery has failed for good.",
  waiting: "Those that have failed so far and wait for their next attempt; they are sent now.",
  missed:
    "Those without a delivery: published while it was paused, before it was there, or before it had this action.",
  all: "Both, those that the filter excluded, and those that were delivered, once more.",
};

const CHOICES = Object.fromEntries(REPLAY_SELECTIONS.map((one) => [one, capital(one)]));

/** A moment as the browser's field has it, in the reader's zone. */
function localText(at: string): string {
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function isoOf(local: string): string | undefined {
  const ms = Date.parse(local);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

interface ReplayFields {
  readonly status: ReplaySelection;
  readonly from: string;
  readonly to: string;
}

/** The fields that the address names. What waits is sent whenever it was published. */
function firstFields({ status, from, to }: Readonly<Record<string, string>>): ReplayFields {
  const beginMs = status === "waiting" ? 0 : Date.now() - ONE_DAY_MS;
  return {
    status: REPLAY_SELECTIONS.find((one) => one === status) ?? "failed",
    from: localText(from ?? new Date(beginMs).toISOString()),
    to: to === undefined ? "" : localText(to),
  };
}

/** Sends a subscription events of the past: which, how many that are, and then whether to. */
export function ReplayForm(props: {
  readonly subscription: Subscription;
  readonly query: Readonly<Record<string, string>>;
}) {
  const { subscription, query } = props;
  const { rowid, application, subscription: name } = subscription;
  const form = useForm(linkTo(["subscriptions", rowid, "replay"], query), () => firstFields(query));
  const { status, from, to } = form.draft.fields;
  const path = `/v1/subscriptions/${rowid}/replay`;
  const body = { from: isoOf(from), ...(to === "" ? {} : { to: isoOf(to) }), status };

  const counted = useResource<ReplayCount>(withQuery(path, body), {
    read: (_, signal) =>
      askJson<ReplayCount>(path, { method: "POST", body: { ...body, dry_run: true }, signal }),
  });
  const count = counted.answer?.data.total;

  const begin = async (): Promise<void> => {
    const { data } = await send<Replay>("POST", path, { body });
    form.draft.drop();
    say(`Replay ${data.rowid} has begun.`);
    goTo(linkTo(["replays", data.rowid]));
  };
  const question: Question = {
    title: (
      <SubscriptionName
        before={`Send ${countText(count ?? 0, "event")} to `}
        record={subscription}
        after="?"
      />
    ),
    body: (
      <>
        <p>{MEANS[status]}</p>
        <p>
          {subscription.active
            ? "New deliveries go first, and the rest is as fast as the handler. It can be cancelled on its way."
            : "The subscription is paused: they are sent once it is active."}
        </p>
      </>
    ),
    act: `Send ${numberText(count ?? 0)}`,
  };
  const command = `evreg subscriptions replay ${shellWord(`${application}/${name}`)} --from ${body.from ?? "TIME"}${
    to === "" ? "" : ` --to ${isoOf(to) ?? "TIME"}`
  } --status ${status}`;
  return (
    <FormScreen
      form={form}
      label={`Replay to ${application}/${name}`}
      title={<SubscriptionName before="Replay to " record={subscription} />}
      lede={
        <>
          Sends it events of <code>{subscription.action}</code> that were published before.
        </>
      }
      send={begin}
      question={question}
      act={count === undefined || count === 0 ? "Send them" : `Send ${numberText(count)}`}
      mayAct={count !== undefined && count > 0}
      leave={linkTo(["subscriptions", rowid])}
      failure={counted.error}
      below={<Command text={command} />}
    >
      <div class="panel pad form-group">
        <ChoiceField label="Which" {...form.fieldOf("status")} choices={CHOICES} hint={MEANS[status]} />
        <TextField
          label="Published from"
          type="datetime-local"
          {...form.fieldOf("from")}
          hint="In your zone."
        />
        <TextField
          label="Until"
          type="datetime-local"
          {...form.fieldOf("to")}
          hint="Without it: until now."
        />
        <Field label="These are" role="group">
          {() => (
            <p class="check" aria-live="polite">
              {count !== undefined
                ? countText(count, "event")
                : counted.error === undefined
                  ? "being counted"
                  : "not known"}
            </p>
          )}
        </Field>
      </div>
    </FormScreen>
  );
}
