import type { Cipher } from "../cipher.ts";

/** A cipher that hides nothing, takes no time, and tells its own key from others. */
export function fakeCipher(key: number): Cipher {
  return {
    keyId: key.toString(16).padStart(16, "0"),
    overheadBytes: 1,
    seal: (plain) => {
      const sealed = new Uint8Array(plain.length + 1);
      sealed.set(plain.map((byte) => byte ^ key));
      sealed[plain.length] = key;
      return Promise.resolve(sealed);
    },
    open: (sealed) => {
      if (sealed.at(-1) !== key) return Promise.reject(new Error("The tag does not match"));
      return Promise.resolve(sealed.slice(0, -1).map((byte) => byte ^ key));
    },
  };
}
