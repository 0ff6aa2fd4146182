import { NEW_SUBSCRIPTION } from "../../src/domain/subscription.ts";
import { openApiDocument } from "../../src/http/openapi.ts";
import { compileSchema } from "../../src/schema/validate/compile.ts";
import { EMPTY_DRAFT, formOf, newBody } from "../../src/ui/screens/subscriptions/settings.ts";

// Prints where the made-up setting is, of what needs no data: the test runs it in a program that has that setting.
const { components } = openApiDocument("0", { mode: "token", anonymousPublish: false }) as {
  components: { schemas: Record<string, { properties: object; required?: readonly string[] }> };
};
const schemas = ["NewSubscription", "SubscriptionUpdate", "Subscription"].filter(
  (name) => "jitter_ms" in components.schemas[name]!.properties,
);
const names = { application: "a", subscription: "b", action: "c" };
const draft = { ...EMPTY_DRAFT, ...names, handler: "https://a.example", jitter_ms: "2s" };
const places = {
  schemas,
  refused: compileSchema(NEW_SUBSCRIPTION).validate({ ...names, jitter_ms: 1 })?.field,
  form: formOf("push").map(({ title }) => title),
  pulls: formOf("pull").map(({ title }) => title),
  sent: JSON.parse(newBody(draft)) as unknown,
};
process.stdout.write(JSON.stringify(places));
