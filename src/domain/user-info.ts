/**
 * An address as it may be told. What stands before an `@` may be a password, also where the whole is no URL, such as a
 * password with a slash in it.
 */
export function withoutUserInfo(address: string): string {
  return address.replace(/^(\s*[a-z][a-z0-9+.-]*:[/\\]+)?.*@/is, "$1[redacted]@");
}
