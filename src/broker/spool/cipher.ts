/** Seals bytes so that only who has the key can read them, or change them unnoticed. */
export interface Cipher {
  /** Names the key and says nothing about it: 16 lowercase hex digits. */
  readonly keyId: string;
  /** By how many bytes sealed bytes are longer. */
  readonly overheadBytes: number;
  /** Seals bytes; the same ones look different each time. */
  seal(plain: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>;
  /** Opens what {@linkcode Cipher.seal | seal} gave. Rejects for anything else. */
  open(sealed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>;
}
