import { type Store, StoreUnavailableError } from "./store/store.ts";

/** Told how PostgreSQL fares. */
export interface StoreWatcher {
  /** It answered a call of this name, be it with a refusal. */
  readonly onAnswer: (call: keyof Store) => void;
  /** It was away, or left open what became of a call of this name. */
  readonly onSilence: (call: keyof Store) => void;
}

/** The same store, watched: each of its calls, those that are added later included. */
export function watchStore(store: Store, { onAnswer, onSilence }: StoreWatcher): Store {
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== "function" || name === "close") {
        return typeof value === "function" ? value.bind(target) : value;
      }
      const call = name as keyof Store;
      return async (...args: unknown[]) => {
        let result;
        try {
          result = await value.apply(target, args);
        } catch (error) {
          if (error instanceof StoreUnavailableError) onSilence(call);
          else onAnswer(call);
          throw error;
        }
        onAnswer(call);
        return result;
      };
    },
  });
}
