import { LOOPBACK_NETWORKS } from "../domain/addresses.ts";
import { EvregError } from "../domain/error.ts";
import type { Config } from "./schema.ts";
import { isLoopbackHost } from "./values.ts";

/**
 * What `serve --dev` makes of a configuration: no token needed, and `http:` and loopback handlers allowed.
 * @throws EvregError `usage` on a host that others could reach
 */
export function devConfig(config: Config): Config {
  if (!isLoopbackHost(config.host)) {
    throw new EvregError(
      "usage",
      `--dev needs no token, so it only listens on this machine: ${config.host} is not a loopback address. Leave --host out, or leave --dev out.`,
    );
  }
  return Object.freeze({
    ...config,
    auth: Object.freeze({ ...config.auth, mode: "off" as const }),
    delivery: Object.freeze({
      ...config.delivery,
      allowHttp: true,
      allowNetworks: Object.freeze([...config.delivery.allowNetworks, ...LOOPBACK_NETWORKS]),
    }),
  });
}
