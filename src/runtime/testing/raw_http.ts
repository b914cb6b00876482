/**
 * HTTP by hand, for clients that leave, stall or pipeline.
 *
 * @module
 */

import type { Socket } from "node:net";
import { rawConnect } from "./raw_peer.ts";
import { within } from "./within.ts";

/** The text of a GET. */
export function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
}

/** Sends `text` on a new connection, which stays open and is not read yet. */
export async function send(port: number, text: string): Promise<Socket> {
  const socket = await rawConnect(port, "127.0.0.1");
  socket.write(text);
  return socket;
}

/** Sends `text` and resolves to all that comes until the server ends the connection. */
export async function exchange(port: number, text: string): Promise<string> {
  return await readToEnd(await send(port, text.replace("\r\n", "\r\nconnection: close\r\n")));
}

/** Resolves to all that comes until the server ends the connection. */
export function readToEnd(socket: Socket): Promise<string> {
  return within(
    new Promise((resolve) => {
      let text = "";
      socket.on("data", (chunk) => text += chunk.toString("latin1")).resume();
      socket.once("end", () => socket.end(() => resolve(text)));
    }),
    "the server ends the connection",
  );
}

/** Resolves to what comes, once `marker` has come. */
export function readUntil(socket: Socket, marker: string): Promise<string> {
  return within(
    new Promise((resolve) => {
      let text = "";
      function onData(chunk: Uint8Array): void {
        text += new TextDecoder("latin1").decode(chunk);
        if (!text.includes(marker)) return;
        socket.removeListener("data", onData).pause();
        resolve(text);
      }
      socket.on("data", onData).resume();
    }),
    `the client sees ${JSON.stringify(marker)}`,
  );
}
