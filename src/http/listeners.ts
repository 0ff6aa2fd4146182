import { readCertificate, type CertificateFiles } from "../runtime/certificate.ts";
import { serveHttp, type ServeOptions } from "./server.ts";

export interface ListenersOptions extends Omit<ServeOptions, "certificate"> {
  /** Of https; both or none. */
  readonly tls: Partial<CertificateFiles>;
}

/** Where a server answers: one listener, and with https a second one for commands on this machine. */
export interface Listeners {
  readonly url: string;
  /** Where a command on this machine reaches it. */
  readonly localUrl: string;
  /** Each `address:port` that others can ask. */
  readonly addresses: readonly string[];
  /** The same with that of the second listener. */
  readonly ownAddresses: readonly string[];
  /** When the certificate in use ends, in milliseconds since the epoch; `undefined` for http. */
  certificateEndsMs(): number | undefined;
  /** As in `RunningServer`. */
  readonly renewCertificate: (tls: ListenersOptions["tls"]) => void;
  close(graceMs: number): Promise<void>;
}

/** @throws EvregError as `serveHttp` and `readCertificate` */
export async function openListeners({ tls, ...options }: ListenersOptions): Promise<Listeners> {
  let certificate = certificateOf(tls);
  if (certificate === undefined) {
    const http = await serveHttp(options);
    const { url, addresses } = http;
    return {
      url,
      localUrl: url,
      addresses,
      ownAddresses: addresses,
      certificateEndsMs: () => undefined,
      renewCertificate: () => undefined,
      close: (graceMs) => http.close(graceMs),
    };
  }
  const https = await serveHttp({ ...options, certificate });
  // A certificate is not made out for loopback addresses, and whom a command trusts must not be guessed at.
  const local = await serveHttp({ ...options, host: "127.0.0.1", port: 0 }).catch(async (error: unknown) => {
    await https.close(0);
    throw error;
  });
  return {
    url: https.url,
    localUrl: local.url,
    addresses: https.addresses,
    ownAddresses: [...https.addresses, ...local.addresses],
    certificateEndsMs: () => certificate?.endsMs,
    renewCertificate(files) {
      const renewed = certificateOf(files);
      if (renewed === undefined) return;
      https.useCertificate(renewed);
      certificate = renewed;
    },
    async close(graceMs) {
      await Promise.all([https.close(graceMs), local.close(graceMs)]);
    },
  };
}

function certificateOf({
  cert,
  key,
}: ListenersOptions["tls"]): ReturnType<typeof readCertificate> | undefined {
  return cert === undefined || key === undefined ? undefined : readCertificate({ cert, key });
}
