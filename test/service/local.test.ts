import { evregContract } from "../contract/evreg.ts";
import { openLocalService } from "../support/local-service.ts";

evregContract("local", () => openLocalService());
