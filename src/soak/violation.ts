/** A rule that a history breaks. */
export interface Violation {
  /** The rule, in a few words. */
  readonly rule: Rule;
  /** What happened instead. */
  readonly text: string;
}

/** The rules, in the words of {@linkcode RULES}. */
export type Rule = keyof typeof RULES;

/** What a history is held to. */
export const RULES = {
  "no trouble": "No replica ends by itself, and every answer is one that the API has",
  "pushes are taken": "A push is answered queued or buffered, or duplicate if it is repeated",
  "outages are told": "While PostgreSQL is away, pushes are buffered and nothing else is answered",
  "nothing is invented": "What is delivered was pushed, to that partition",
  "stored once": "A transaction is one message, however often its push was repeated",
  "one order": "All groups get a partition's messages in one and the same order for the first time",
  "push order": "A message whose predecessor was answered before it was sent comes after it: " +
    "always where that was stored, else if all its attempts went to the replica that buffered that; and messages of one push keep their order",
  "one lease at a time": "While a batch is leased, or waits to be retried, nothing of its " +
    "partition is delivered to its group",
  "from the first unfinished": "A batch is what follows the last message that the group is done " +
    "with, dead letters aside, without a gap: nothing is passed over",
  "done is done":
    "A message whose ack was answered as a success, to complete or to dead-letter it, " +
    "never comes again to its group, unless it was completed in one call with a lower message that " +
    "was given back",
  "lost leases move nothing": "An ack under a lease that has ended is refused",
  "held leases count": "An ack under a lease that holds is not refused",
  "nothing is lost":
    "Each message that was accepted is delivered to each group, and done in the end",
  "new is that moment": "A group that starts as new gets what is pushed after its first pop, and " +
    "nothing that was stored before it",
} as const;
