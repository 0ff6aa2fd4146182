import { useEffect, useRef } from "preact/hooks";
import { shellWord } from "../../../domain/formats.ts";
import { isReservedName, matches } from "../../../domain/names.ts";
import type { Figures, Stats } from "../../../domain/stats/stats.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { useResource, withQuery } from "../../api/resource.ts";
import { maySome } from "../../api/session.ts";
import { Command } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Button, Head, Section } from "../../parts/layout.tsx";
import { linkTo, type Route } from "../../parts/route.ts";
import { Failed, Status, Waiting } from "../../parts/states.tsx";
import { numberText, useNow } from "../../parts/values.tsx";
import { type ReadAction, readAction } from "../../records/exact-record.ts";
import { stateNow, SubscriptionName } from "../../records/subscription.tsx";
import { ActionSettings, NewActionForm } from "./action-forms.tsx";
import { ActionList } from "./action-list.tsx";
import { actionPath, ActionState, mayChange, type PartProps, PROTECTED } from "./action-parts.tsx";
import { CheckSchema } from "./check-schema.tsx";
import { PublishBox } from "./publish-box.tsx";
import { Revisions } from "./revisions.tsx";
import { usedFields } from "./schema-diff.ts";

const EVERY_MS = 10_000;

const PARTS = [
  { path: undefined, title: "Schema", view: SchemaOf },
  { path: "revisions", title: "Revisions", view: Revisions },
  { path: "check", title: "Check a change", view: CheckSchema },
  { path: "publish", title: "Publish", view: PublishBox },
  { path: "settings", title: "Settings", view: ActionSettings },
] as const;

/** One action; behind it in the address what is done with it. */
function ActionPage({ name, route }: { readonly name: string; readonly route: Route }) {
  const read = useResource<ReadAction>(actionPath(name), { everyMs: EVERY_MS, read: readAction });
  const stats = useResource<Stats>(withQuery("/v1/stats", { range: "1h", action: name }), {
    everyMs: EVERY_MS,
  });
  const subscriptions = useResource<readonly Subscription[]>("/v1/subscriptions");
  const parts = useRef<HTMLElement>(null);
  const action = read.answer?.data;
  useEffect(
    () => parts.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }),
    [action?.action, route.path[2]],
  );
  if (action === undefined) return <Waiting source={read} screen={name} />;
  const subscribers = subscriptions.answer?.data.filter((one) => matches(one.action, action.action));
  const offered = PARTS.filter(({ path }) => path !== "settings" || mayChange(action));
  const part = offered.find(({ path }) => path === route.path[2]) ?? offered[0]!;
  const View = part.view;
  return (
    <>
      <Failed error={read.error} reload={read.reload} />
      <ActionHead action={action} subscribers={subscribers?.length} totals={stats.answer?.data.totals} />
      <nav ref={parts} class="record-parts" aria-label="Of this action">
        {offered.map(({ path, title }) => (
          <a
            key={title}
            href={linkTo(["actions", name, ...(path === undefined ? [] : [path])])}
            aria-current={path === part.path ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <View
        // The list of revisions is read anew with each of them.
        key={part.path === "revisions" ? `revisions ${action.revision}` : part.title}
        action={action}
        subscribers={subscribers}
        route={route}
      />
    </>
  );
}

function ActionHead(props: {
  readonly action: ReadAction;
  readonly subscribers: number | undefined;
  readonly totals: Figures | undefined;
}) {
  const { action, subscribers, totals } = props;
  const { action: name, application, compatibility, successor } = action;
  const published =
    totals !== undefined && !isReservedName(name) && `${numberText(totals.published)} published`;
  return (
    <Head
      title={name}
      badge={<ActionState record={action} look="badge" />}
      facts={{
        Revision: action.revision,
        Application: <a href={linkTo(["actions"], { application })}>{application}</a>,
        Protects: (
          <>
            {PROTECTED[compatibility]} <span class="muted">({compatibility})</span>
          </>
        ),
        Subscribers: subscribers,
        "In the last hour": published,
        "Publish instead to": successor !== null && <a href={linkTo(["actions", successor])}>{successor}</a>,
      }}
      acts={<Button to={linkTo(["events"], { action: name })} label="Its events" />}
    />
  );
}

/** All actions, a new one, or one with its schema and what is done with it. */
export function Actions({ route }: { readonly route: Route }) {
  const [, name] = route.path;
  if (name !== undefined) return <ActionPage key={name} name={name} route={route} />;
  // An action may be called anything, also "new".
  if (route.query["create"] !== undefined && maySome("write")) return <NewActionForm query={route.query} />;
  return <ActionList route={route} />;
}

/** The schema in force, and who depends on it. */
function SchemaOf({ action, subscribers }: PartProps) {
  return (
    <div class="cols">
      <JsonView title="Schema" what="the schema" text={action.exactText} indented />
      <Subscribers action={action.action} subscribers={subscribers} />
    </div>
  );
}

const MOST_SHOWN = 100;

function Subscribers(props: {
  readonly action: string;
  readonly subscribers: readonly Subscription[] | undefined;
}) {
  const { action, subscribers } = props;
  const now = useNow();
  if (subscribers === undefined) return null;
  return (
    <Section title="Subscribers" note="and the fields that they look at">
      <div class="panel">
        {subscribers.length === 0 ? (
          <div class="empty">
            <p>Nobody hears these events.</p>
            <Command
              text={`evreg subscriptions create --application APP --subscription NAME --action ${shellWord(action)} --handler URL`}
            />
          </div>
        ) : (
          <ul class="lines">
            {subscribers.slice(0, MOST_SHOWN).map((one) => (
              <li key={one.rowid}>
                <div class="row">
                  <a class="grow strong" href={linkTo(["subscriptions", one.rowid])}>
                    <SubscriptionName record={one} />
                  </a>
                  <span class="push">
                    <Status state={stateNow(one, now)} />
                  </span>
                </div>
                <p class="muted small break">
                  {one.action !== action && (
                    <>
                      by <code>{one.action}</code>.{" "}
                    </>
                  )}
                  <FieldsOf subscription={one} />
                </p>
              </li>
            ))}
          </ul>
        )}
        {subscribers.length > MOST_SHOWN && (
          <div class="more">
            {MOST_SHOWN} of {numberText(subscribers.length)}
            <Button look="bare" to={linkTo(["subscriptions"], { action })} label="All of them" />
          </div>
        )}
      </div>
    </Section>
  );
}

const MOST_FIELDS = 8;

function FieldsOf({ subscription }: { readonly subscription: Subscription }) {
  const fields = usedFields([subscription]);
  const named = (by: "filter" | "order"): string => {
    const names = fields.flatMap((one) => (one.by === by ? [one.field] : []));
    const more = names.length - MOST_FIELDS;
    return `${names.slice(0, MOST_FIELDS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  };
  const [filter, order] = [named("filter"), named("order")];
  return (
    <>
      {filter === "" && order === "" && "Gets each event: it has no filter, and no order by key."}
      {filter !== "" && (
        <>
          Filters by <code>{filter}</code>.{" "}
        </>
      )}
      {order !== "" && (
        <>
          In order by <code>{order}</code>.
        </>
      )}
    </>
  );
}
