import type { Store } from "../store/store.ts";
import type { Metrics } from "./metrics.ts";

/** What of a store pops call. */
type PopStore = Pick<Store, "pop" | "giveBack">;

/** Claims batches as `store` does, and times each query. */
export function meterPops(store: PopStore, metrics: Pick<Metrics, "startPopQuery">): PopStore {
  return {
    async pop(...query) {
      const stop = metrics.startPopQuery();
      try {
        return await store.pop(...query);
      } finally {
        stop();
      }
    },
    giveBack: (...lease) => store.giveBack(...lease),
  };
}
