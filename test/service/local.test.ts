import { evregServiceContract } from "../contract/evreg.ts";
import { openLocalService } from "../support/local-service.ts";

evregServiceContract(() => openLocalService());
