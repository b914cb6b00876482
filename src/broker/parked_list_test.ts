import assert from "node:assert/strict";
import fc from "fast-check";
import { type Parked, ParkedList } from "./parked_list.ts";

class Item implements Parked {
  readonly sequence: number;
  previous: this | undefined;
  next: this | undefined;

  constructor(sequence: number) {
    this.sequence = sequence;
  }
}

function sequences(list: ParkedList<Item>): number[] {
  const found = [];
  for (let item = list.first; item !== undefined; item = item.next) found.push(item.sequence);
  return found;
}

Deno.test("a list of parked ones keeps them sorted by age under any additions and removals", () => {
  fc.assert(fc.property(fc.array(fc.nat({ max: 15 }), { maxLength: 60 }), (toggles) => {
    const list = new ParkedList<Item>();
    const items = new Map<number, Item>();
    for (const sequence of toggles) {
      const item = items.get(sequence);
      if (item === undefined) {
        const added = new Item(sequence);
        items.set(sequence, added);
        list.add(added);
      } else {
        items.delete(sequence);
        list.remove(item);
      }
      const expected = [...items.keys()].sort((a, b) => a - b);
      assert.deepEqual(sequences(list), expected);
      assert.equal(list.size, expected.length);
    }
  }));
});

Deno.test("what is taken out of the list holds no other item", () => {
  const list = new ParkedList<Item>();
  const [a, b, c] = [new Item(1), new Item(2), new Item(3)];
  for (const item of [a, b, c]) list.add(item);
  list.remove(b);
  assert.equal(b.previous, undefined);
  assert.equal(b.next, undefined);
});
