// Names by which the parts of the executable find each other.

/** The asset with libSQL's native part, packed with zstd. */
export const ADDON = "libsql.node.zst";

/** What threads are told: the folders into which that part may be written, the best first. */
export const ADDON_FOLDERS = "evreg.addonFolders";
