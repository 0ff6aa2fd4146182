/** The commit that a program was built from. */
export interface Build {
  /** The beginning of its hash, with `-modified` where files differed from it. */
  readonly commit: string;
  /** ISO 8601: when it was committed, so that the same commit gives the same program. */
  readonly date: string;
}

/** Set by both builds, as JSON; not there where the sources run as they are. */
declare const EVREG_BUILD: string;

/** `undefined` where the sources were in no git checkout. */
export const BUILD: Build | undefined =
  typeof EVREG_BUILD === "undefined" ? undefined : ((JSON.parse(EVREG_BUILD) as Build | null) ?? undefined);

/** `0.3.0 (3f2a91c0d4e5, 2026-11-23T20:53:25Z)` */
export function versionText(version: string, build = BUILD): string {
  return build === undefined ? version : `${version} (${build.commit}, ${build.date})`;
}
