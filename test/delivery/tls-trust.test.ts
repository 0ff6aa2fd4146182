import { rootCertificates } from "node:tls";
import { expect, it } from "vitest";
import { attemptErrorCode, tlsReasonOf } from "../../src/delivery/exchange.ts";
import { trusting } from "../../src/delivery/sender.ts";
import { attemptErrorText, tlsReasonText } from "../../src/domain/words/attempts.ts";
import { LogLines } from "../../src/runtime/log-lines.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { type Bench, useBench } from "./engine-setup.ts";
import { OTHER_CERTIFICATE, TEST_CERTIFICATE } from "../support/tls-fixture.ts";

const failure = (code: string): Error => Object.assign(new Error(code), { code });

it.each([
  ["CERT_HAS_EXPIRED", "expired"],
  ["CERT_NOT_YET_VALID", "not_yet_valid"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "wrong_name"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "self_signed"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "unknown_authority"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "unknown_authority"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "unknown_authority"],
  ["CERT_REVOKED", "certificate_refused"],
  ["INVALID_PURPOSE", "certificate_refused"],
  ["PATH_LENGTH_EXCEEDED", "certificate_refused"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "handshake_failed"],
  ["EPROTO", "handshake_failed"],
] as const)("%s is told as %s", (code, reason) => {
  const error = failure(code);
  expect([attemptErrorCode(error), tlsReasonOf(error)]).toEqual(["tls_failed", reason]);
  expect(tlsReasonOf(new AggregateError([failure("ECONNREFUSED"), error]))).toBe(reason);
  expect(attemptErrorText("tls_failed", reason)).toMatch(/^TLS failed: .+/);
  expect(tlsReasonText("newer" as never)).toBe("newer");
});

it("trusts several authorities beside those that Node trusts", () => {
  expect(rootCertificates.length).toBeGreaterThan(100);
  expect(() => trusting(`${TEST_CERTIFICATE}${OTHER_CERTIFICATE}`)).not.toThrow();
});

let bench: Bench;
useBench((opened) => ({ bench } = opened));

it("an attempt says why TLS failed, in the record and the log, and delivers once the authority is named", async () => {
  const handler = await openReceiver({ tls: true });
  const subscription = await bench.withEvents(1, handler.url);
  await bench.once();
  expect(await bench.delivery(subscription)).toMatchObject({
    status: "waiting",
    last_error: "tls_failed",
    attempts: [{ error_code: "tls_failed", tls_reason: "self_signed", response: null, refusal: null }],
  });
  const { fields } = bench.log.with("will be retried")[0]!;
  expect(fields).toMatchObject({ error: "tls_failed", tls: "self_signed" });
  const line = new LogLines(false).text(
    JSON.stringify({
      time: "2026-01-01T00:00:00.000Z",
      level: "info",
      msg: "attempt failed, will be retried",
      ...fields,
    }),
  );
  expect(line).toContain("TLS failed: its certificate is self-signed and not trusted here");
  await bench.clock.advance(60_000);
  await bench.once({}, { ca: TEST_CERTIFICATE });
  expect((await bench.delivery(subscription)).status).toBe("delivered");
  expect((await bench.delivery(subscription)).attempts[1]?.tls_reason).toBeNull();
});
