import { Flags } from "@oclif/core";
import { readInput } from "./input.ts";
import { usage } from "./usage.ts";

/** What the deliveries of a subscription carry as `Authorization: Bearer`. The value itself never stands on a command line. */
export const bearerFlags = {
  bearer: Flags.option({
    summary: "What Authorization: Bearer carries: the secret (default), or there is no such header.",
    options: ["secret", "none"] as const,
    helpValue: "secret|none",
    exclusive: ["bearer-token-file"],
  })(),
  "bearer-token-file": Flags.string({
    summary: "A file (- for stdin) that holds the value Authorization: Bearer carries instead of the secret.",
    helpValue: "FILE",
  }),
};

/** The members of a request that these flags stand for. */
export async function bearerOf(flags: {
  readonly bearer?: "secret" | "none" | undefined;
  readonly "bearer-token-file"?: string | undefined;
}): Promise<{ bearer?: "secret" | "none"; bearer_token?: string }> {
  const path = flags["bearer-token-file"];
  if (path === undefined) return flags.bearer === undefined ? {} : { bearer: flags.bearer };
  const token = Buffer.from(await readInput(path))
    .toString("utf8")
    .trim();
  if (token === "") throw usage(`--bearer-token-file: ${path === "-" ? "the input" : path} is empty.`);
  return { bearer_token: token };
}
