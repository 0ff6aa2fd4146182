import type { DeliveryConfig } from "../config/config.ts";
import { createAddressRules } from "../domain/address.ts";
import type { Clock } from "../runtime/clock.ts";
import { createAddressGuard } from "./address-guard.ts";
import { createHostNames } from "./names/host-names.ts";
import { createSender, type Sender } from "./sender.ts";

export interface GuardedSenderParts {
  readonly clock: Clock;
  readonly config: Pick<DeliveryConfig, "timeoutMs" | "allowHttp" | "allowNetworks">;
  /** Most connections to one origin: fewer than attempts, and handlers that hang could take all from those that answer. */
  readonly maxPerOrigin: number;
  /** What this service listens on, where nothing is sent to. */
  readonly ownAddresses: () => readonly string[];
  /** PEM of a certificate authority to trust instead of the system's. */
  readonly ca?: string;
  /** DNS servers to ask for handlers' addresses instead of the system's, as `address:port`. */
  readonly dnsServers?: readonly string[];
}

/** A sender that looks names up by its own means and connects only where the configuration lets deliveries go. */
export function createGuardedSender(parts: GuardedSenderParts): Sender {
  const { clock, config, maxPerOrigin, ownAddresses, ca, dnsServers } = parts;
  const { timeoutMs, allowHttp, allowNetworks } = config;
  const names = createHostNames({
    clock,
    withinMs: timeoutMs,
    ...(dnsServers === undefined ? {} : { servers: dnsServers }),
  });
  const rules = createAddressRules(allowNetworks);
  const sender = createSender({
    clock,
    guard: createAddressGuard({ rules, ownAddresses, resolve: names.resolve }),
    allowHttp,
    timeoutMs,
    maxPerOrigin,
    ...(ca === undefined ? {} : { ca }),
  });
  return {
    ...sender,
    close() {
      sender.close();
      names.close();
    },
  };
}
