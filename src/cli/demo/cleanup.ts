/** What has to be undone at the end, the latest first. */
export class Cleanup {
  readonly #tasks: (() => Promise<unknown>)[] = [];

  /** Adds a task. It may fail, and the others are done all the same. */
  add(task: () => Promise<unknown>): void {
    this.#tasks.push(task);
  }

  /** Does them all, once. Resolves to what went wrong. */
  async run(): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (let task = this.#tasks.pop(); task; task = this.#tasks.pop()) {
      try {
        await task();
      } catch (error) {
        errors.push(error);
      }
    }
    return errors;
  }
}
