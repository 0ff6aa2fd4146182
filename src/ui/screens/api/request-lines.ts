import { curlOf, JSON_HEADER, TOKEN_HEADER } from "../../parts/copy.tsx";
import { apiUrl, withQuery } from "../../api/request.ts";
import { shellWord } from "../../../domain/formats.ts";
import { needsNoToken, type Operation } from "./open-api.ts";

export type RequestValues = Readonly<Record<string, string>>;

/** The path with its parameters, and the query with those that have a value. Names that are not given stay as `{name}`. */
export function pathWith({ path, parameters = [] }: Operation, values: RequestValues): string {
  const filled = path.replace(/\{(\w+)\}/g, (braces, name: string) => {
    const value = values[name]?.trim() ?? "";
    return value === "" ? braces : encodeURIComponent(value);
  });
  const query = parameters
    .filter(({ in: where }) => where === "query")
    .map(({ name }) => [name, values[name]] as const);
  return withQuery(filled, Object.fromEntries(query));
}

export function headersWith(
  { parameters = [] }: Operation,
  values: RequestValues,
): Readonly<Record<string, string>> {
  const headers = parameters.filter(
    ({ in: where, name }) => where === "header" && (values[name] ?? "") !== "",
  );
  return Object.fromEntries(headers.map(({ name }) => [name, values[name]!]));
}

/** Writes the request for a shell. The token is a variable, never the token. */
export function curlLine(operation: Operation, values: RequestValues, body: string | undefined): string {
  const given = Object.entries(headersWith(operation, values));
  const headers = [
    ...(needsNoToken(operation) ? [] : [TOKEN_HEADER]),
    ...given.map(([name, value]) => shellWord(`${name}: ${value}`)),
    ...(body === undefined ? [] : [JSON_HEADER]),
  ];
  return curlOf(operation.method, apiUrl(pathWith(operation, values)), headers, body);
}
