/** What a {@linkcode ParkedList} holds. The list alone sets the links. */
export interface Parked {
  /** Where it stands: the list is sorted by this, least first. */
  readonly sequence: number;
  /** The one before it. */
  previous: this | undefined;
  /** The one after it. */
  next: this | undefined;
}

/** Those who are parked, oldest first. One can be taken out anywhere at no cost. */
export class ParkedList<T extends Parked> {
  #first: T | undefined;
  #last: T | undefined;
  #size = 0;

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  /** The oldest. */
  get first(): T | undefined {
    return this.#first;
  }

  /** Puts one in at its place. It must be in no list. */
  add(item: T): void {
    // A newcomer belongs at the end; one that comes back was among the oldest when it was taken out,
    // so that its place is near the front.
    let before: T | undefined = this.#last;
    if (before !== undefined && before.sequence > item.sequence) {
      let after: T = this.#first!;
      while (after.sequence < item.sequence) after = after.next!;
      before = after.previous;
    }
    const after: T | undefined = before === undefined ? this.#first : before.next;
    item.previous = before;
    item.next = after;
    if (before === undefined) this.#first = item;
    else before.next = item;
    if (after === undefined) this.#last = item;
    else after.previous = item;
    this.#size++;
  }

  /** Takes one out. It must be in this list. */
  remove(item: T): void {
    const { previous, next } = item;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    item.previous = undefined;
    item.next = undefined;
    this.#size--;
  }
}
