import type { HttpHandler, HttpListener, ListenHttp } from "../http_seam.ts";
import { type CallOptions, readReply, type Reply, toRequest } from "./http_bench.ts";

/** An HTTP server without a socket, for one replica. */
export class MemoryHttp {
  /** Why the port cannot be bound. */
  refusal: Error | undefined;
  #handler: HttpHandler | undefined;
  readonly #underWay = new Set<Promise<unknown>>();

  /** Whether the port is bound. */
  get isBound(): boolean {
    return this.#handler !== undefined;
  }

  /** Binds the port. */
  readonly listen: ListenHttp = (handler, { port }): Promise<HttpListener> => {
    if (this.refusal !== undefined) return Promise.reject(this.refusal);
    this.#handler = handler;
    const close = async () => {
      this.#handler = undefined;
      await Promise.all(this.#underWay);
    };
    return Promise.resolve({ port, close });
  };

  /** Asks and reads the reply. */
  async call(path: string, options: CallOptions = {}): Promise<Reply> {
    if (this.#handler === undefined) throw new Error("connection refused");
    const { completed = Promise.resolve() } = options;
    const replying = this.#handler(toRequest(path, options), { completed });
    this.#underWay.add(replying);
    const response = await replying;
    this.#underWay.delete(replying);
    return await readReply(response);
  }
}
