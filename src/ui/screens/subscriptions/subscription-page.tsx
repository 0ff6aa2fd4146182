import type { Delivery } from "../../../domain/delivery.ts";
import { shellWord } from "../../../domain/formats.ts";
import type { Attention } from "../../../domain/operations.ts";
import type { CancelledMeta, ConsumersMeta, Subscription } from "../../../domain/subscription.ts";
import type { SubscriptionState } from "../../../domain/words/attention.ts";
import { send, useResource, withQuery } from "../../api/resource.ts";
import { may } from "../../api/session.ts";
import { type Question, say, sayError, useActing } from "../../parts/acting.ts";
import { CopyCommand } from "../../parts/copy.tsx";
import { Button, Head, Menu, Section } from "../../parts/layout.tsx";
import { goTo, linkTo, type Route, useRecordName } from "../../parts/route.ts";
import { Empty, Failed, Say, Status, Waiting } from "../../parts/states.tsx";
import { numberText, Relative, Time, useNow } from "../../parts/values.tsx";
import { DeliveryActs } from "../../records/delivery.tsx";
import { type ReadSubscription, readSubscription } from "../../records/exact-record.ts";
import {
  AttentionWords,
  heldBack,
  isAhead,
  needOf,
  stateNow,
  SubscriptionName,
} from "../../records/subscription.tsx";
import { DeliveriesOf, HealthStrip } from "./health.tsx";
import { ReplayForm } from "./replay-form.tsx";
import { RotateSecret } from "./secrets.tsx";
import { EditSubscription, NewSubscriptionForm } from "./settings-form.tsx";
import { SettingsList } from "./settings-list.tsx";
import { SubscriptionList } from "./subscription-list.tsx";
import { TestHandler } from "./test-handler.tsx";

const EVERY_MS = 2_000;

/** One subscription; behind it in the address what is done with it: `edit`, `test`, `rotate`, `replay`. */
function SubscriptionPage({ id, route }: { readonly id: string; readonly route: Route }) {
  const path = `/v1/subscriptions/${encodeURIComponent(id)}`;
  const part = route.path[2];
  const read = useResource<ReadSubscription, ConsumersMeta>(path, {
    everyMs: EVERY_MS,
    read: readSubscription,
  });
  const subscription = read.answer?.data;
  useRecordName(subscription?.application, subscription?.subscription);
  if (subscription === undefined) {
    return <Waiting source={read} screen={`Subscription ${id}`} />;
  }
  const mayWrite = may(subscription.mode === "push" ? "write" : "listen", subscription.application);
  if (part !== undefined && !mayWrite) {
    return (
      <Empty screen={`Subscription ${id}`} title="This token may only read it">
        Changes need the scope write.
      </Empty>
    );
  }
  if (part === "edit") return <EditSubscription subscription={subscription} />;
  if (part === "test" && subscription.mode === "push") return <TestHandler subscription={subscription} />;
  if (part === "rotate") return <RotateSecret subscription={subscription} />;
  if (part === "replay") return <ReplayForm subscription={subscription} query={route.query} />;
  return (
    <>
      <Failed error={read.error} reload={read.reload} />
      <OneSubscription
        subscription={subscription}
        consumers={read.answer?.meta?.consumers}
        route={route}
        mayWrite={mayWrite}
      />
    </>
  );
}

function OneSubscription(props: {
  readonly subscription: ReadSubscription;
  readonly consumers: number | undefined;
  readonly route: Route;
  readonly mayWrite: boolean;
}) {
  const { subscription, consumers, route, mayWrite } = props;
  const { rowid, application, subscription: name, action, handler, active, mode } = subscription;
  const fullName = `${application}/${name}`;
  const now = useNow();
  const path = `/v1/subscriptions/${rowid}`;
  const { act } = useActing(sayError);
  const setActive = (wanted: boolean, isUndo = false): void => {
    const { missed, since } = heldBack(rowid) ?? { missed: 0, since: null };
    act(async () => {
      await send("PUT", path, { body: { active: wanted } });
      const said = wanted
        ? `${fullName} is active.`
        : `${fullName} is paused: it misses what is published from now on.`;
      if (wanted && missed !== null && missed > 0) {
        const replay = linkTo(["subscriptions", rowid, "replay"], { status: "missed", from: since });
        say(`${said} It has missed ${numberText(missed)}.`, () => goTo(replay), "Replay them…");
      } else if (isUndo) say(said);
      else say(said, () => setActive(!wanted, true));
    });
  };
  const remove = async (): Promise<void> => {
    const { meta } = await send<Subscription, CancelledMeta>("DELETE", path);
    say(`${fullName} is deleted; ${numberText(meta?.cancelled ?? 0)} deliveries were cancelled.`);
    goTo(linkTo(["subscriptions"]));
  };
  const link = (part: string): string => linkTo(["subscriptions", rowid, part]);
  const acts = (
    <>
      {mayWrite && (
        <>
          {mode === "push" && <Button to={link("test")} label="Test" />}
          <Button to={link("replay")} label="Replay…" />
          {active && <Button run={() => setActive(false)} label="Pause" />}
          <Button to={link("edit")} label="Edit" />
        </>
      )}
      <Menu label="More">
        <li>
          <CopyCommand text={`evreg subscriptions get ${shellWord(fullName)}`} />
        </li>
        {mayWrite && (
          <>
            <li>
              <Button look="bare" to={link("rotate")} label="Rotate the secret…" />
            </li>
            <li>
              <Button
                look="bare danger"
                run={() => act(remove, deleteQuestion(subscription, fullName))}
                label="Delete…"
              />
            </li>
          </>
        )}
      </Menu>
    </>
  );
  return (
    <>
      <Head
        title={<SubscriptionName record={subscription} />}
        badge={<Status state={stateNow(subscription, now)} badge />}
        facts={{
          Subscription: rowid,
          Action: action.includes("*") ? (
            <code>{action}</code>
          ) : (
            <a href={linkTo(["actions", action])}>{action}</a>
          ),
          Consumers:
            handler === null && (consumers === undefined ? "pull" : `${numberText(consumers)} wait now`),
          Handler: handler !== null && <code>{handler}</code>,
        }}
        acts={acts}
      />
      <StateInWords subscription={subscription} activate={() => setActive(true)} />
      <HealthStrip id={rowid} route={route} />
      <div class="cols">
        <DeliveriesOf subscription={subscription} route={route} />
        <Section title="Settings" aside={mayWrite && <a href={link("edit")}>Edit</a>}>
          <div class="panel">
            <SettingsList subscription={subscription} />
          </div>
        </Section>
      </div>
    </>
  );
}

const deleteQuestion = (subscription: Subscription, fullName: string): Question => ({
  title: <SubscriptionName before="Delete " record={subscription} after="?" />,
  body: (
    <>
      <p>
        Its unfinished deliveries are cancelled, and it gets nothing more of{" "}
        <code>{subscription.action}</code>. Past deliveries stay listed until they expire.
      </p>
      <p>This cannot be undone. Pausing it can.</p>
    </>
  ),
  act: "Delete it",
  keep: "Keep it",
  danger: true,
  type: fullName,
});

/** All subscriptions, a new one, or one with its health and settings. */
export function Subscriptions({ route }: { readonly route: Route }) {
  const [, id] = route.path;
  if (id === undefined) return <SubscriptionList route={route} />;
  if (id === "new") return <NewSubscriptionForm query={route.query} />;
  return <SubscriptionPage key={id} id={id} route={route} />;
}

const WAITING_EVERY_MS = 3_000;

const TITLES: Readonly<Record<SubscriptionState, string>> = {
  deactivated: "evreg has deactivated it",
  blocked: "A delivery has used up its retries, and those behind it wait",
  failing: "Its last attempt failed",
  unclaimed: "Deliveries wait, and no consumer claims them",
  slowed: "The handler asked for time",
  paused: "A person has paused it",
  active: "Deliveries have failed for good",
};

/** How a subscription is, why, what happens next, and what a person can do. Nothing, where all is well. */
function StateInWords(props: { readonly subscription: Subscription; readonly activate: () => void }) {
  const { subscription, activate } = props;
  const { rowid, application, active, mode, blocked_by: blockedBy, slowed_until: until } = subscription;
  const now = useNow();
  const state = stateNow(subscription, now);
  const item = state === "active" ? undefined : needOf(rowid, state);
  const failed = needOf(rowid, "failed");
  const mayWrite = may(mode === "push" ? "write" : "listen", application);
  const isFailing = state === "failing" || state === "slowed";
  const path = withQuery("/v1/deliveries", { subscription: rowid, status: "waiting", limit: 1 });
  const waiting = useResource<readonly Delivery[]>(isFailing ? path : undefined, {
    everyMs: WAITING_EVERY_MS,
  }).answer?.data[0];
  const { act } = useActing(sayError);
  const sendOne = ({ rowid: delivery }: Delivery): void =>
    act(async () => {
      await send("POST", `/v1/deliveries/${delivery}/retry`);
      say(`Delivery ${delivery} is sent now.`);
    });
  if (state === "active" && failed === undefined) return null;
  const replay = (status: string, from?: string | null): string =>
    linkTo(["subscriptions", rowid, "replay"], { status, from });
  return (
    <Say
      state={state === "active" ? "failed" : state}
      title={TITLES[state]}
      button={
        mayWrite && (
          <span class="acts row">
            {!active && <Button run={activate} label="Resume" />}
            {failed !== undefined && (
              <Button to={replay("failed", failed.published_from)} label="Send them again…" />
            )}
            {blockedBy !== null && active && <BlockingActs id={blockedBy} subscription={subscription} />}
            {isFailing && (
              <>
                {waiting !== undefined && <Button run={() => sendOne(waiting)} label="Send one now" />}
                <Button to={replay("waiting")} label="Send all that wait…" />
              </>
            )}
          </span>
        )
      }
    >
      {item === undefined ? (
        subscription.disabled_reason
      ) : (
        <>
          It <AttentionWords item={item} />
        </>
      )}
      {!active && <Held item={item} replay={replay("missed", item?.since)} />}
      {active && isAhead(until, now) && (
        <>
          {" "}
          Nothing is sent before <Time at={until} />, <Relative at={until} />.
        </>
      )}
      {state === "failing" && waiting !== undefined && isAhead(waiting.next_attempt_at, now) && (
        <>
          {" "}
          Delivery {waiting.rowid} is tried again <Relative at={waiting.next_attempt_at} />.
        </>
      )}
      {state === "blocked" && (
        <>
          {" "}
          <a href={linkTo(["deliveries", blockedBy ?? ""])}>Delivery {blockedBy}</a> is tried on until it is
          delivered or given up.
        </>
      )}
      {state === "unclaimed" && (
        <>
          {" "}
          A consumer claims with <code>{`POST /v1/subscriptions/${rowid}/claims`}</code>.
        </>
      )}
      {failed !== undefined && (
        <>
          {" "}
          <a href={linkTo(["deliveries"], { subscription: rowid, status: "failed" })}>
            <AttentionWords item={failed} />
          </a>
        </>
      )}
    </Say>
  );
}

/** What a pause does to deliveries and events. */
function Held({ item, replay }: { readonly item: Attention | undefined; readonly replay: string }) {
  const missed = item?.missed ?? 0;
  return (
    <>
      {" "}
      What is held is sent when it is resumed.{" "}
      {missed === 0 ? (
        "What is published meanwhile is missed: only a replay sends it."
      ) : (
        <>
          What is missed has no delivery: <a href={replay}>a replay sends it</a>.
        </>
      )}
    </>
  );
}

/** What can be done with the delivery that blocks it. */
function BlockingActs(props: { readonly id: number; readonly subscription: Subscription }) {
  const { id, subscription } = props;
  const delivery = useResource<Delivery>(`/v1/deliveries/${id}`, { everyMs: WAITING_EVERY_MS }).answer?.data;
  return delivery === undefined ? null : <DeliveryActs delivery={delivery} subscription={subscription} />;
}
