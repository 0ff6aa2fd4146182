import { afterEach, expect, test } from "vitest";
import { nextCommand, setTarget, serveCommand } from "../../src/cli/target/next-command.ts";

afterEach(() => setTarget({}));

test("a suggested command is as short as the one typed", () => {
  expect(nextCommand("deliveries get 7")).toBe("evreg deliveries get 7");
  expect(serveCommand()).toBe("evreg serve");
});

test("a suggested command acts on the same target, and contains no token", () => {
  setTarget({ url: "https://events.example.com", token: "evreg_secret" });
  expect(nextCommand("deliveries get 7")).toBe(
    "evreg deliveries get 7 --url https://events.example.com --token TOKEN",
  );
  setTarget({ data: "my data", config: "it's.yaml" });
  expect(nextCommand("events")).toBe(String.raw`evreg events --data 'my data' --config 'it'\''s.yaml'`);
  expect(serveCommand()).toBe(String.raw`evreg serve --data 'my data' --config 'it'\''s.yaml'`);
});
