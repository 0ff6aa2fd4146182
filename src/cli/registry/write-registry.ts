import { note, writeOut } from "../output.ts";
import { printableLine } from "../printable.ts";
import { exportText, writeExport, writeExports, type ExportFormat } from "./export-files.ts";
import type { ExportedRegistry } from "./export.ts";

/** Where registry files go: into a folder, a file, or to stdout. */
export interface RegistryTarget {
  readonly "output-dir"?: string | undefined;
  readonly "output-file"?: string | undefined;
  readonly force?: boolean;
}

/**
 * Writes what `apply` reads, and says on stderr what it wrote.
 * @param byApplication the same, for a folder
 * @returns whether it is in files now
 */
export async function writeRegistry(
  whole: ExportedRegistry,
  byApplication: ReadonlyMap<string, ExportedRegistry>,
  format: ExportFormat,
  target: RegistryTarget,
): Promise<boolean> {
  const { "output-dir": folder, "output-file": path, force = false } = target;
  if (folder !== undefined) {
    const { written, unchanged, others } = await writeExports(folder, byApplication, { format, force });
    const kept = unchanged.length === 0 ? "" : `; ${unchanged.length} as they were`;
    const names = written.length === 0 ? "nothing" : written.join(", ");
    note(`Wrote ${printableLine(names)} in ${printableLine(folder)}${kept}.`);
    if (others.length > 0) {
      note(
        `${printableLine(folder)} also holds ${printableLine(others.join(", "))}, which evreg apply reads too.`,
      );
    }
    return true;
  }
  if (path === undefined || path === "-") await writeOut(exportText(whole, format));
  else await writeExport(path, exportText(whole, format));
  return path !== undefined && path !== "-";
}
