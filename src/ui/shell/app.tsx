import type { ComponentChildren } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import type { Health } from "../../domain/operations.ts";
import { useAttention } from "../api/attention.ts";
import { toggleLive, useResource } from "../api/resource.ts";
import { identity } from "../api/session.ts";
import { useKeys } from "../parts/keys.ts";
import { Button } from "../parts/layout.tsx";
import { goTo, linkTo, recordName, route, type Route } from "../parts/route.ts";
import { Empty } from "../parts/states.tsx";
import { Bar } from "./bar.tsx";
import { Confirm, Find, KeyHelp, Toasts } from "./dialogs.tsx";
import { Rail } from "./rail.tsx";
import { isOffered, screenOf, SCREENS } from "./screens.tsx";
import { SignIn } from "./sign-in.tsx";

const HEALTH_EVERY_MS = 5_000;

/** All of the page: who asks, the navigation, and the screen that the address names. */
export function App() {
  return identity.use() === null ? <SignIn /> : <Shell />;
}

function Shell() {
  const [open, setOpen] = useState<"find" | "keys" | null>(null);
  const health = useResource<Health>("/health", { everyMs: HEALTH_EVERY_MS });
  useAttention();
  const at = route.use();
  const name = recordName.use();
  const screen = screenOf(at);
  useKeys([
    { key: "find", what: "Find or go to", run: () => setOpen("find") },
    { key: "?", what: "All keys", run: () => setOpen("keys") },
    { key: "p", what: "Pause the view, or go on", run: toggleLive },
    ...SCREENS.filter(isOffered).map(({ key, title, path }) => ({
      key: `g ${key}`,
      what: `Go to ${title}`,
      run: () => goTo(linkTo([path])),
    })),
  ]);
  const title = [
    ...(at.path.length > 1 ? [name?.join("/") ?? at.path[1]] : []),
    screen?.title ?? "Not found",
    "evreg",
  ];
  useEffect(() => {
    document.title = title.join(" · ");
  }, [title.join()]);
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain}>
        Go to the content
      </a>
      <Rail health={health} />
      <Bar screen={screen} find={() => setOpen("find")} />
      <main id="main" tabIndex={-1}>
        {screen === undefined ? (
          <Empty
            screen="Not found"
            title="There is no such screen"
            button={<Button to="#/" label="Overview" />}
          >
            The address names none. It may be of another version.
          </Empty>
        ) : !isOffered(screen) ? (
          <Empty screen={screen.title} title="This token may not see this screen">
            It needs the scope {screen.scope}
            {screen.scope === "admin" && " for all applications"}.
          </Empty>
        ) : (
          <Guard key={screen.path} at={at}>
            <screen.view route={at} />
          </Guard>
        )}
      </main>
      <Toasts />
      <Confirm />
      {open === "find" && <Find close={() => setOpen(null)} />}
      {open === "keys" && <KeyHelp close={() => setOpen(null)} />}
    </>
  );
}

/** The address has the screen after its `#`, so the link itself would lead away. */
function focusMain(event: MouseEvent): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}

/** Stands for a screen that failed, until the page leads elsewhere. */
function Guard({ at, children }: { readonly at: Route; readonly children: ComponentChildren }) {
  const [failed, setFailed] = useState<Route | undefined>();
  useErrorBoundary((error) => {
    reportError(error);
    setFailed(at);
  });
  if (failed !== at) return <>{children}</>;
  return (
    <Empty
      screen="Not shown"
      title="Not shown"
      button={<Button run={() => location.reload()} label="Load the page again" />}
    >
      This screen has failed.
    </Empty>
  );
}
