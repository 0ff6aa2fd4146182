import { statSync } from "node:fs";
import type { Found, Problem } from "./found.ts";
import { isLoopbackHost } from "./loopback.ts";
import { CONFIG_KEYS } from "./schema.ts";
import type { ConfigValue } from "./values.ts";

type Values = Map<string, ConfigValue>;
type Places = ReadonlyMap<string, Found>;

/**
 * What must hold between keys. Changes `values` where a default has to follow another key.
 * @returns the mistakes, in the order of the keys
 */
export function applyRules(values: Values, found: Places): Problem[] {
  const problems: Problem[] = [];
  const host = String(values.get("host"));
  if (values.get("auth.mode") === "off" && !isLoopbackHost(host)) {
    problems.push({
      name: "auth.mode",
      place: found.get("auth.mode")?.place ?? "defaults",
      message: `auth.mode off is only for a loopback host such as 127.0.0.1, not ${host}: anybody who reaches it could do anything`,
    });
  }
  const [cert, certKey] = [found.get("tls.cert"), found.get("tls.key")];
  if ((cert === undefined) !== (certKey === undefined)) {
    const given = (cert ?? certKey)!;
    const missing = cert === undefined ? "tls.cert" : "tls.key";
    problems.push({
      name: given.key.path,
      place: given.place,
      message: `${given.key.path} needs ${missing} beside it: https takes a certificate and its key`,
    });
  }
  const previousKey = found.get("encryption.previousKey");
  if (previousKey !== undefined && !values.has("encryption.key")) {
    problems.push({
      name: previousKey.key.path,
      place: previousKey.place,
      message:
        "encryption.previousKey is for changing the key, and there is no encryption.key to change to; set EVREG_ENCRYPTION_KEY to the new one",
    });
  }
  const inFlight = found.get("delivery.maxInFlightPerSubscription");
  const total = Number(values.get("delivery.maxInFlight"));
  const most = Math.max(1, total - 1);
  if (inFlight === undefined) {
    const own = Number(values.get("delivery.maxInFlightPerSubscription"));
    values.set("delivery.maxInFlightPerSubscription", Math.min(own, Math.max(1, Math.floor(total / 2))));
  } else if (Number(inFlight.value) > most) {
    problems.push({
      name: inFlight.key.path,
      place: inFlight.place,
      message: `${inFlight.key.path} must be at most ${most} with a delivery.maxInFlight of ${total}, so that one subscription cannot take every place`,
    });
  }
  keepTokenWithItsServer(values, found);
  return problems;
}

/** What starts all the same, but a person should know. Never holds a secret. */
export function warningsFor(values: Values, found: Places, file: string | undefined): string[] {
  const warnings: string[] = [];
  const secrets = CONFIG_KEYS.filter((key) => key.secret === true && found.get(key.path)?.source === "file");
  if (
    file !== undefined &&
    secrets.length > 0 &&
    process.platform !== "win32" &&
    (statSync(file).mode & 0o077) !== 0
  ) {
    warnings.push(
      `${file} holds ${secrets.map((key) => key.path).join(" and ")} and others on this machine may read it; run: chmod 600 ${file}`,
    );
  }
  const url = values.get("remote.url");
  if (typeof url === "string" && values.has("remote.token") && sendsInTheOpen(url)) {
    warnings.push(`The token goes to ${url} unencrypted; use an https: address.`);
  }
  return warnings;
}

/** A file's token is for that file's server; `--url` or `EVREG_URL` naming another must not hand it over. */
function keepTokenWithItsServer(values: Values, found: Places): void {
  const [url, token] = [found.get("remote.url"), found.get("remote.token")];
  if (token?.source === "file" && url !== undefined && url.source !== "file") values.delete("remote.token");
}

function sendsInTheOpen(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopbackHost(hostname.replace(/^\[|\]$/g, ""));
}
