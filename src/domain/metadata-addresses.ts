import ipaddr from "ipaddr.js";
import { hiddenV4 } from "./hidden-v4.ts";
import { type Address, isV6 } from "./special-addresses.ts";

/**
 * Whether a cloud's metadata service, or a host agent like it, answers there: nothing there takes webhooks, and one
 * request can give away an operator's credentials.
 *
 * An IPv6 address that ends in such an IPv4 address is taken for a translator's form of it, whatever its prefix:
 * networks have translators with prefixes of their own.
 */
export function isMetadata(address: Address): boolean {
  if (METADATA.has(address.toNormalizedString())) return true;
  if (!isV6(address)) return false;
  const last = new ipaddr.IPv4(address.toByteArray().slice(12));
  return [last, ...hiddenV4(address)].some((behind) => METADATA.has(behind.toString()));
}

/** In normalised form. Azure's lies in public space; the others also fall to the special blocks unless one is opened. */
const METADATA: ReadonlySet<string> = new Set(
  [
    "169.254.169.254", // AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack, and most others
    "169.254.169.253", // AWS: resolver
    "169.254.169.123", // AWS: time
    "169.254.170.2", // AWS: container credentials
    "169.254.170.23", // AWS: EKS pod credentials
    "169.254.0.23", // Tencent
    "169.254.42.42", // Scaleway
    "100.100.100.200", // Alibaba
    "168.63.129.16", // Azure: host agent
    "192.0.0.192", // Oracle
    "fd00:ec2::254", // AWS
    "fd00:ec2::253", // AWS: resolver
    "fd00:ec2::123", // AWS: time
    "fd00:ec2::23", // AWS: EKS pod credentials
    "fd20:ce::254", // Google
    "fd00:a9fe:a9fe::1", // Akamai
    "fd00:42::42", // Scaleway
    "fe80::1234:5678:9abc", // Azure: host agent
  ].map((text) => ipaddr.parse(text).toNormalizedString()),
);
