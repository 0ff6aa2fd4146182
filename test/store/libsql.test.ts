import { storeContract } from "../contract/store.ts";
import { openNewStore } from "./opened-store.ts";

storeContract("libSQL", () => openNewStore());
