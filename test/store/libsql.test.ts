import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { storeContract } from "../contract/store.ts";
import { testOwner } from "./owner.ts";

storeContract("libSQL", (folder) => openLibsqlStore({ folder, owner: testOwner(), logger: silentLogger }));
