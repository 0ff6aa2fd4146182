import { shared } from "../api/shared.ts";

export type Theme = "system" | "light" | "dark";

const SETTING = "evreg.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const kept = localStorage.getItem(SETTING);

export const theme = shared<Theme>(THEMES.find((name) => name === kept) ?? "system");

/** `system` leaves the choice to the browser. */
function paint(): void {
  document.documentElement.dataset["theme"] = theme.value;
}

paint();

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(SETTING, theme.value);
  paint();
}
