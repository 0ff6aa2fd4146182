import { Section } from "../../parts/layout.tsx";
import { Button } from "../../parts/button.tsx";
import type { Subscription } from "../../../domain/subscription.ts";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { shellWord } from "../../../domain/formats.ts";
import { Command } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Status } from "../../parts/status.tsx";
import { stateNow } from "../../records/subscription-state.tsx";
import { numberText, useNow } from "../../parts/time.tsx";
import { linkTo } from "../../parts/route.ts";
import type { PartProps } from "./part-props.ts";
import { usedFields } from "./used-fields.ts";

/** The schema in force, and who depends on it. */
export function SchemaOf({ action, subscribers }: PartProps) {
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
                    <SubscriptionName of={one} />
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
