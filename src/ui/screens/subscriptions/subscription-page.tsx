import { SubscriptionList } from "./subscription-list.tsx";
import { NewSubscriptionForm } from "./new-subscription.tsx";
import { shellWord } from "../../../domain/formats.ts";
import type { CancelledMeta, ConsumersMeta, Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { send } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { useActing } from "../../parts/acting.ts";
import { Button } from "../../parts/button.tsx";
import type { Question } from "../../parts/confirm.tsx";
import { CopyCommand } from "../../parts/copy.tsx";
import { Head, Section } from "../../parts/layout.tsx";
import { Menu } from "../../parts/menu.tsx";
import { goTo, linkTo, type Route, useRecordName } from "../../parts/route.ts";
import { Empty, Failed, Waiting } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { numberText } from "../../parts/texts.ts";
import { useNow } from "../../parts/time.tsx";
import { say, sayError } from "../../parts/toast.tsx";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { heldBack, stateNow } from "../../records/subscription-state.tsx";
import { DeliveriesOf } from "./deliveries-of.tsx";
import { EditSubscription } from "./edit-subscription.tsx";
import { HealthStrip } from "./health-strip.tsx";
import { type ReadSubscription, readSubscription } from "../../records/exact-record.ts";
import { ReplayForm } from "./replay-form.tsx";
import { RotateSecret } from "./rotate-secret.tsx";
import { SettingsList } from "./settings-list.tsx";
import { StateInWords } from "./subscription-state-words.tsx";
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
    return (
      <div class="panel">
        <h1 class="sr">Subscription {id}</h1>
        <Waiting of={read} />
      </div>
    );
  }
  const isLost = read.error !== undefined && <Failed error={read.error} reload={read.reload} />;
  const mayWrite = may(subscription.mode === "push" ? "write" : "listen", subscription.application);
  if (part !== undefined && !mayWrite) {
    return (
      <>
        <h1 class="sr">Subscription {id}</h1>
        <Empty title="This token may only read it">Changes need the scope write.</Empty>
      </>
    );
  }
  if (part === "edit") return <EditSubscription subscription={subscription} />;
  if (part === "test" && subscription.mode === "push") return <TestHandler subscription={subscription} />;
  if (part === "rotate") return <RotateSecret subscription={subscription} />;
  if (part === "replay") return <ReplayForm subscription={subscription} query={route.query} />;
  return (
    <>
      {isLost}
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
    void act(async () => {
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
                run={() => void act(remove, deleteQuestion(subscription, fullName))}
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
        title={<SubscriptionName of={subscription} />}
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
        <Section
          title="Settings"
          aside={
            mayWrite && (
              <a class="push" href={link("edit")}>
                Edit
              </a>
            )
          }
        >
          <div class="panel">
            <SettingsList subscription={subscription} />
          </div>
        </Section>
      </div>
    </>
  );
}

const deleteQuestion = (subscription: Subscription, fullName: string): Question => ({
  title: (
    <>
      Delete <SubscriptionName of={subscription} />?
    </>
  ),
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
