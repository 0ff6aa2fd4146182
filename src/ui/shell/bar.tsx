import { Fragment } from "preact";
import { live, toggleLive } from "../api/resource.ts";
import { Icon } from "../parts/icons.tsx";
import { linkTo, recordName, route } from "../parts/route.ts";
import { capital, clock, durationText, useNow } from "../parts/values.tsx";
import type { Screen } from "./screens.tsx";

/** Above each screen: where one is, the search, and whether what is shown is live. */
export function Bar({ screen, find }: { readonly screen: Screen | undefined; readonly find: () => void }) {
  const [, record, part] = route.use().path;
  const name = (recordName.use() ?? [record]).map((one, index) => (
    <Fragment key={index}>
      {index > 0 && "/"}
      <bdi>{one}</bdi>
    </Fragment>
  ));
  return (
    <header class="bar">
      <div class="crumbs">
        {screen !== undefined && record !== undefined ? (
          <>
            <a href={linkTo([screen.path])}>{screen.title}</a>
            <span aria-hidden="true">/</span>
            {part === undefined ? (
              <span aria-current="page">{name}</span>
            ) : (
              <>
                <a class="grow" href={linkTo([screen.path, record])}>
                  {name}
                </a>
                <span aria-hidden="true">/</span>
                <span aria-current="page">{capital(part)}</span>
              </>
            )}
          </>
        ) : (
          <span aria-current="page">{screen?.title ?? "Not found"}</span>
        )}
      </div>
      <button class="find" onClick={find}>
        <Icon name="find" />
        <span>Find or go to…</span>
        <kbd aria-hidden="true">{/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl K"}</kbd>
      </button>
      <LiveButton />
    </header>
  );
}

const PAUSE = "Holds what the page shows. Events are delivered all the same.";

function LiveButton() {
  const now = live.use();
  if (now.state === "reconnecting") return <Reconnecting since={now.since} />;
  const isPaused = now.state === "paused";
  return (
    <button class="live" aria-pressed={isPaused} title={PAUSE} onClick={toggleLive}>
      <span class="pulse" aria-hidden="true" />
      {isPaused ? `Paused ${clock.format(now.since)}` : "Live"}
      <span class="verb hide-s">
        {isPaused ? "Resume the view" : "Pause the view"} <kbd>P</kbd>
      </span>
    </button>
  );
}

function Reconnecting({ since }: { readonly since: Date }) {
  const now = useNow();
  return (
    <span class="live lost" role="status">
      <span class="pulse" aria-hidden="true" />
      Reconnecting, {durationText(Math.max(1_000, now - since.getTime()))} old
    </span>
  );
}
