import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { EvregError } from "../domain/error.ts";

/** The files a server proves itself with. */
export interface CertificateFiles {
  /** Its certificate and those between it and the authority, as PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** When it ends; milliseconds since the epoch. */
  readonly endsMs: number;
}

/** @throws EvregError `usage` naming the file that cannot be used, and why; never with a part of the key */
export function readCertificate(files: CertificateFiles): Certificate {
  const [cert, key] = read(["tls.cert", files.cert], ["tls.key", files.key]) as [Buffer, Buffer];
  const certificate = attempt(
    "tls.cert",
    files.cert,
    "is no certificate in PEM form",
    () => new X509Certificate(cert),
  );
  const privateKey = attempt("tls.key", files.key, "is no private key in PEM form without a passphrase", () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw unusable("tls.key", files.key, `is not the key of the certificate ${files.cert}`);
  }
  attempt("tls.cert", files.cert, "cannot be served", () => createSecureContext({ cert, key }));
  return { cert, key, endsMs: certificate.validToDate.getTime() };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * The certificates in a PEM file, each of which can be read.
 * @param name of the setting, for messages
 * @throws EvregError `usage` naming the file, and why it cannot be used
 */
export function readAuthorities(name: string, path: string): string {
  const certificates = read([name, path])[0]!.toString("latin1").match(CERTIFICATE) ?? [];
  if (certificates.length === 0) throw unusable(name, path, "holds no certificate in PEM form");
  for (const [index, certificate] of certificates.entries()) {
    const which = certificates.length === 1 ? "a certificate" : `a certificate (number ${index + 1})`;
    attempt(name, path, `holds ${which} that cannot be read`, () => new X509Certificate(certificate));
  }
  return certificates.join("\n");
}

/** @throws EvregError naming all that cannot be read */
function read(...files: readonly (readonly [name: string, path: string])[]): Buffer[] {
  const faults: string[] = [];
  const contents = files.flatMap(([name, path]) => {
    try {
      // Reading from a pipe would wait for who writes to it.
      if (statSync(path).isFile()) return readFileSync(path);
      faults.push(`${name}: ${path} is no file.`);
    } catch (error) {
      faults.push(`${name}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
    }
    return [];
  });
  if (faults.length > 0) throw new EvregError("usage", faults.join(" "));
  return contents;
}

function attempt<T>(name: string, path: string, why: string, act: () => T): T {
  try {
    return act();
  } catch {
    throw unusable(name, path, why);
  }
}

function unusable(name: string, path: string, why: string): EvregError {
  return new EvregError("usage", `${name}: ${path} ${why}.`);
}
