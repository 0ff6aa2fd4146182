import { useState } from "preact/hooks";
import type { CancelledMeta, ConsumersMeta, Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { askJson } from "../../api/request.ts";
import { noted, useResource } from "../../api/resource.ts";
import { SubscriptionName } from "../../parts/delivery-acts.tsx";
import { CopyCommand, quoted } from "../../parts/copy.tsx";
import { Menu } from "../../parts/menu.tsx";
import { Empty, Failed, Waiting } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { heldBack, stateNow } from "../../parts/subscription-state.ts";
import { numberText, useNow } from "../../parts/time.tsx";
import { confirm } from "../../shell/confirm.tsx";
import { useRecordName } from "../../shell/record-name.ts";
import { goTo, linkTo, type Route } from "../../shell/route.ts";
import { say, sayError } from "../../shell/toast.tsx";
import { DeliveriesOf } from "./deliveries-of.tsx";
import type { ReadSubscription } from "./draft.ts";
import { readSubscription } from "./read-subscription.ts";
import { EditSubscription } from "./edit-subscription.tsx";
import { ReplayForm } from "./replay-form.tsx";
import { HealthStrip } from "./health-strip.tsx";
import { RotateSecret } from "./rotate-secret.tsx";
import { SettingsList } from "./settings-list.tsx";
import { StateInWords } from "./subscription-state-words.tsx";
import { TestHandler } from "./test-handler.tsx";

const EVERY_MS = 2_000;

/** One subscription; behind it in the address what is done with it: `edit`, `test`, `replay`. */
export function SubscriptionPage({ id, route }: { readonly id: string; readonly route: Route }) {
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
        <Waiting error={read.error} reload={read.reload} />
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
  if (part === "edit") return <EditSubscription subscription={subscription} saved={read.reload} />;
  if (part === "test" && subscription.mode === "push") return <TestHandler subscription={subscription} />;
  if (part === "replay") return <ReplayForm subscription={subscription} query={route.query} />;
  return (
    <>
      {isLost}
      <OneSubscription
        subscription={subscription}
        consumers={read.answer?.meta?.consumers}
        route={route}
        mayWrite={mayWrite}
        reload={read.reload}
      />
    </>
  );
}

function OneSubscription(props: {
  readonly subscription: ReadSubscription;
  readonly consumers: number | undefined;
  readonly route: Route;
  readonly mayWrite: boolean;
  readonly reload: () => void;
}) {
  const { subscription, consumers, route, mayWrite, reload } = props;
  const { rowid, application, subscription: name, action, handler, active, mode } = subscription;
  const fullName = `${application}/${name}`;
  const [isRotating, setRotating] = useState(false);
  const now = useNow();
  const path = `/v1/subscriptions/${rowid}`;
  const setActive = async (wanted: boolean, isUndo = false): Promise<void> => {
    const { missed, since } = heldBack(rowid) ?? { missed: 0, since: null };
    try {
      await askJson(path, { method: "PUT", body: { active: wanted } });
      reload();
      const said = wanted
        ? `${fullName} is active.`
        : `${fullName} is paused: it misses what is published from now on.`;
      if (wanted && missed !== null && missed > 0) {
        const replay = linkTo(["subscriptions", rowid, "replay"], { status: "missed", from: since });
        say(`${said} It has missed ${numberText(missed)}.`, () => goTo(replay), "Replay them…");
      } else if (isUndo) say(said);
      else say(said, () => void setActive(!wanted, true));
    } catch (error) {
      sayError(noted(error));
    }
  };
  const remove = async (): Promise<void> => {
    const isSure = await confirm({
      title: (
        <>
          Delete <SubscriptionName of={subscription} />?
        </>
      ),
      body: (
        <>
          <p>
            Its unfinished deliveries are cancelled, and it gets nothing more of <code>{action}</code>. Past
            deliveries stay listed until they expire.
          </p>
          <p>This cannot be undone. Pausing it can.</p>
        </>
      ),
      act: "Delete it",
      keep: "Keep it",
      danger: true,
      type: fullName,
    });
    if (!isSure) return;
    try {
      const { meta } = await askJson<Subscription, CancelledMeta>(path, { method: "DELETE" });
      say(`${fullName} is deleted; ${numberText(meta?.cancelled ?? 0)} deliveries were cancelled.`);
      goTo(linkTo(["subscriptions"]));
    } catch (error) {
      sayError(noted(error));
    }
  };
  return (
    <>
      <header class="head">
        <div class="what">
          <div class="row">
            <h1>
              <SubscriptionName of={subscription} />
            </h1>
            <Status state={stateNow(subscription, now)} badge />
          </div>
          <p class="facts">
            <span>
              <b>Subscription</b> {rowid}
            </span>
            <span>
              <b>Action</b>{" "}
              {action.includes("*") ? (
                <code>{action}</code>
              ) : (
                <a href={linkTo(["actions", action])}>{action}</a>
              )}
            </span>
            {handler === null ? (
              <span>
                <b>Consumers</b> {consumers === undefined ? "pull" : `${numberText(consumers)} wait now`}
              </span>
            ) : (
              <span>
                <b>Handler</b> <code>{handler}</code>
              </span>
            )}
          </p>
        </div>
        <div class="acts">
          {mayWrite && (
            <>
              {mode === "push" && (
                <a class="btn" href={linkTo(["subscriptions", rowid, "test"])}>
                  Test
                </a>
              )}
              <a class="btn" href={linkTo(["subscriptions", rowid, "replay"])}>
                Replay…
              </a>
              {active && (
                <button class="btn" onClick={() => void setActive(false)}>
                  Pause
                </button>
              )}
              <a class="btn" href={linkTo(["subscriptions", rowid, "edit"])}>
                Edit
              </a>
            </>
          )}
          <Menu label="More">
            <li>
              <CopyCommand text={`evreg subscriptions get ${quoted(fullName)}`} />
            </li>
            {mayWrite && (
              <>
                <li>
                  <button class="btn bare" onClick={() => setRotating(true)}>
                    Rotate the secret…
                  </button>
                </li>
                <li>
                  <button class="btn bare danger" onClick={() => void remove()}>
                    Delete…
                  </button>
                </li>
              </>
            )}
          </Menu>
        </div>
      </header>
      <StateInWords subscription={subscription} changed={reload} activate={() => void setActive(true)} />
      <HealthStrip id={rowid} route={route} />
      <div class="cols">
        <DeliveriesOf subscription={subscription} route={route} />
        <section aria-label="Settings">
          <header>
            <h2>Settings</h2>
            {mayWrite && (
              <a class="push" href={linkTo(["subscriptions", rowid, "edit"])}>
                Edit
              </a>
            )}
          </header>
          <div class="panel">
            <SettingsList subscription={subscription} />
          </div>
        </section>
      </div>
      {isRotating && (
        <RotateSecret subscription={subscription} close={() => setRotating(false)} rotated={reload} />
      )}
    </>
  );
}
