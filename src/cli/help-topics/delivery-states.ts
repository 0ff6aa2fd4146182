import type { AttemptErrorCode, DeliveryStatus } from "../../domain/delivery.ts";

const STATES_HEAD =
  "An event goes to each active subscription to its action as one delivery, in one of these states. `evreg deliveries` lists them, and `evreg deliveries get ID` shows each attempt.";

const STATES: Readonly<Record<DeliveryStatus, string>> = {
  pending: "Not sent yet; it will be at once.",
  delivering: "An attempt is under way.",
  waiting: "The last attempt failed; the next has its time.",
  held: "Its subscription is paused; it goes on when that is active again.",
  delivered: "The handler answered 200 to 299. Final.",
  failed:
    "The retries are used up, or the handler answered 410. Final, but `evreg deliveries retry ID` sends it again.",
  filtered: "The subscription's filter kept it back; nothing was sent. Final.",
  cancelled: "Its subscription was deleted. Final.",
};

const RETRIES =
  "Retries: all answers but 200 to 299 fail an attempt, redirects as well. The waits before the retries are 0, 2, 4, 8 and 16 seconds, then they go on doubling up to 6 hours, each up to 10 % longer by chance. There are 5 retries unless the subscription says otherwise (--max-retries, at most 20; --retry-schedule for waits of its own). A Retry-After of the handler lengthens a wait. 410 deactivates the subscription, which holds what is still to be sent.";

const ERRORS =
  "The last error is HTTP and the status that the handler answered, or one of these where there was no answer:";

const CODES: Readonly<Record<AttemptErrorCode, string>> = {
  timeout: "It took longer than the subscription's --timeout, else delivery.timeoutMs.",
  dns_failed: "The host's name could not be looked up.",
  address_refused:
    "The host has an address that deliveries may not go to (delivery.allowNetworks), or it is http: where that is not allowed (delivery.allowHttp).",
  connection_refused: "Nothing listens there.",
  connection_reset: "The connection ended before the answer.",
  tls_failed: "The certificate is not valid for that host, or https was not agreed on.",
  protocol_error: "What came was no HTTP answer.",
  interrupted: "The server ended during the attempt. It counts for nothing and is made again.",
  secret_unreadable: "The subscription's secret is encrypted with a key that the server was not given.",
  event_damaged:
    "The event is damaged in the data file, and was not sent. Restore a backup; evreg doctor --deep tells more.",
  network_error: "Any other failure of the network.",
};

export function deliveryStates(wrapped: (text: string, indent: number) => string): string {
  return [
    wrapped(STATES_HEAD, 0),
    entries(STATES, wrapped),
    wrapped(RETRIES, 0),
    wrapped(ERRORS, 0),
    entries(CODES, wrapped),
  ].join("\n");
}

function entries(
  meanings: Readonly<Record<string, string>>,
  wrapped: (text: string, indent: number) => string,
): string {
  return Object.entries(meanings)
    .map(([name, meaning]) => `  ${name}\n${wrapped(meaning, 6)}`)
    .join("");
}
