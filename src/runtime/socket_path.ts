import { mkdtemp, rmdir, symlink, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

/** The longest path that both Linux (107) and macOS (103) take for a socket, in bytes. */
const SOCKET_PATH_BYTES_MAX = 103;

/**
 * Calls `use` with a path for a socket at `path`. A path that is too long for a socket is reached by a
 * short link, which exists during the call; a system would cut it without a word.
 *
 * @param path Where the socket lies, or shall lie: an absolute path.
 */
export async function withSocketPath<T>(
  path: string,
  use: (socketPath: string) => Promise<T>,
): Promise<T> {
  if (new TextEncoder().encode(path).length <= SOCKET_PATH_BYTES_MAX) return await use(path);
  const folder = await mkdtemp(join(tmpdir(), "queen-"));
  const link = join(folder, "d");
  try {
    await symlink(dirname(path), link);
    try {
      return await use(join(link, basename(path)));
    } finally {
      await unlink(link);
    }
  } finally {
    await rmdir(folder);
  }
}
