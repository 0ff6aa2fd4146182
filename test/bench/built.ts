/**
 * A module of evreg as it was built, typed by its source. What is set beside the server must be of the same build: the
 * source may have moved on since.
 */
export function built<T>(path: string): Promise<T> {
  return import(new URL(`../../dist/${path}`, import.meta.url).href) as Promise<T>;
}
