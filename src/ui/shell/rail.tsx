import type { Health } from "../../domain/operations.ts";
import { attention, attentionCount } from "../api/attention.ts";
import type { Resource } from "../api/resource.ts";
import { identity, readSession } from "../api/session.ts";
import { shared } from "../api/shared.ts";
import { Icon } from "../parts/icons.tsx";
import { Button, useClosing } from "../parts/layout.tsx";
import { linkTo, route } from "../parts/route.ts";
import { Status } from "../parts/states.tsx";
import { numberText } from "../parts/values.tsx";
import { isOffered, type Screen, screenOf, SCREENS } from "./screens.tsx";
import { signOut } from "./sign-in.tsx";

/** Whether the entry is beneath "more" on narrow screens. */
const isBeneathMore = ({ group, path }: Screen): boolean => group === "operate" || path === "deliveries";

/** The navigation: at the left, on narrow screens at the bottom. */
export function Rail({ health }: { readonly health: Resource<Health> }) {
  const more = useClosing();
  const colours = `Colours: ${theme.use().replace("system", "as the system")}`;
  const trouble = troubleOf(health);
  const current = screenOf(route.use());
  const offered = SCREENS.filter(isOffered);
  const link = (screen: Screen, narrow: boolean) => (
    <li key={screen.path} class={narrow ? "" : "late"}>
      <a href={linkTo([screen.path])} aria-current={screen === current ? "page" : undefined}>
        <Icon name={screen.path} />
        {screen.title}
        {screen === SCREENS[0] && <NeedsPerson />}
      </a>
    </li>
  );
  const daily = offered.filter(({ group }) => group === "daily");
  const operate = offered.filter(({ group }) => group === "operate");
  return (
    <nav class="rail" aria-label="Main">
      <a class="brand" href="#/">
        <svg viewBox="0 0 20 20" aria-hidden="true">
          <path d="M3 4.5h8M3 10h5M3 15.5h8M12.5 6.5l4 3.5-4 3.5" />
        </svg>
        evreg
        <small>{health.answer?.data.version}</small>
      </a>
      <ul class="tabs">
        {daily.map((screen) => link(screen, screen.path !== "deliveries"))}
        <li class="narrow-only">
          <details ref={more} class="menu">
            <summary class={current !== undefined && isBeneathMore(current) ? "lit" : undefined}>
              <Icon name="more" />
              More
            </summary>
            <ul>{offered.filter(isBeneathMore).map((screen) => link(screen, true))}</ul>
          </details>
        </li>
      </ul>
      {operate.length > 0 && (
        <div class="extra">
          <h2>Operate</h2>
          <ul>{operate.map((screen) => link(screen, true))}</ul>
        </div>
      )}
      <div class="foot">
        <div class={trouble === undefined ? "row" : "row danger-text"}>
          <Status state={trouble === undefined ? "active" : "failed"} word={false} />
          {trouble ?? "Store and engine run"}
        </div>
        <div class="row">
          <code class="soft grow" title={location.host}>
            {location.host}
          </code>
          <button class="btn bare icon-only push" aria-label={colours} title={colours} onClick={nextTheme}>
            <Icon name="theme" />
          </button>
        </div>
        {readSession() !== null && (
          <div class="row">
            <span class="soft grow" title={identity.value?.scopes.join(", ")}>
              {identity.value?.name}
            </span>
            <Button look="bare push" run={signOut} label="Sign out" />
          </div>
        )}
      </div>
    </nav>
  );
}

/** How many things need a person; on narrow screens a dot. */
function NeedsPerson() {
  const { answer } = attention.use();
  if (answer === undefined) return null;
  const count = attentionCount(answer, Date.now());
  if (count === 0) return null;
  return (
    <span class="alert">
      {numberText(count)}
      <span class="sr"> {count === 1 ? "thing needs" : "things need"} a person</span>
    </span>
  );
}

/** What is wrong with the server, if anything is. */
function troubleOf({ answer, error }: Resource<Health>): string | undefined {
  if (error !== undefined) return error.status === 0 ? "Not connected" : error.message;
  const { store = "ok", engine = "running" } = answer?.data ?? {};
  return store === "ok" && engine === "running" ? undefined : `Store ${store}, engine ${engine}`;
}

type Theme = "system" | "light" | "dark";

const SETTING = "evreg.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const theme = shared(THEMES.find((name) => name === localStorage.getItem(SETTING)) ?? "system");

/** `system` leaves the choice to the browser. */
function paint(): void {
  document.documentElement.style.colorScheme = theme.value === "system" ? "" : theme.value;
}

paint();

function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(SETTING, theme.value);
  paint();
}
