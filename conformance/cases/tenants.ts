import { randomUUID } from "node:crypto";
import type { ConformanceCase } from "../case.ts";
import type { CaseContext } from "../context.ts";
import type { PeerDialer } from "../harness/dialer.ts";
import { expectEqual } from "../harness/failure.ts";
import { frame, FRAME_TYPES, typeName } from "../harness/frame.ts";
import { dirtyHintsOf, type ReceivedFrame, wakesOf } from "../harness/listener.ts";
import { expectParked, expectPopped, lookTwice, parkBesideMessage } from "./support/pops.ts";
import type { ParkedPop } from "./support/pops.ts";
import {
  cacheLongLease,
  configure,
  deleteQueue,
  expectShortLeases,
  type QueueName,
  shortenLease,
} from "./support/queues.ts";

const { MESSAGE_AVAILABLE, MESSAGE_AVAILABLE_BATCH } = FRAME_TYPES;
const { QUEUE_CONFIG_SET, QUEUE_CONFIG_DELETE } = FRAME_TYPES;

/** The tenant of whoever names none over HTTP. */
const DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001";

/** A tenant that no queue here belongs to. */
const FOREIGN_TENANT = "a1b2c3d4-e5f6-4789-8abc-def012345678";

/** What a frame may say of its tenant without naming one: all of it is as good as nothing (TEN-3). */
const GARBLED: readonly unknown[] = [
  "",
  " ",
  "default",
  FOREIGN_TENANT.replaceAll("-", ""),
  `{${FOREIGN_TENANT}}`,
  `urn:uuid:${FOREIGN_TENANT}`,
  ` ${FOREIGN_TENANT}`,
  FOREIGN_TENANT.slice(0, -1),
  `${FOREIGN_TENANT}0`,
  FOREIGN_TENANT.replace("a", "g"),
  "a1b2c3d-4e5f6-4789-8abc-def012345678",
  7,
  true,
  null,
  [FOREIGN_TENANT],
  { id: FOREIGN_TENANT },
];

/** Which tenant frames name, and whom a frame touches by that. */
export const tenantCases: readonly ConformanceCase[] = [
  {
    id: "tenants/sent-frames-name-tenant",
    requirements: ["TEN-1"],
    level: "must",
    sentence: "Every frame that names a queue names the default tenant where that is the queue's.",
    topology: "signed",
    needs: [["notify", "broker"]],
    attach: "changes",
    async run(context) {
      const queue = context.uniqueName("default");
      await expectNamed(context, { queue }, DEFAULT_TENANT);
    },
  },
  {
    id: "tenants/sent-frames-name-other-tenant",
    requirements: ["TEN-1"],
    level: "must",
    sentence: "Every frame that names a queue of another tenant names that one.",
    topology: "tenancy",
    needs: ["broker", "tenancy"],
    async run(context) {
      const tenant = randomUUID();
      await expectNamed(context, { queue: context.uniqueName("other"), tenant }, tenant);
    },
  },
  {
    id: "tenants/sent-lowercase",
    requirements: ["TEN-1"],
    level: "must",
    sentence: "A tenant that a request names in uppercase goes out in lowercase.",
    topology: "tenancy",
    needs: ["broker", "tenancy"],
    async run(context) {
      const tenant = randomUUID();
      const queue = context.uniqueName("uppercase");
      await expectNamed(context, { queue, tenant: tenant.toUpperCase() }, tenant);
    },
  },
  {
    id: "tenants/absent-is-every-tenant",
    requirements: ["TEN-2"],
    level: "must",
    sentence:
      "A wake without a tenant wakes the pops of every tenant that has a queue of its name.",
    topology: "tenancy",
    needs: ["broker", "tenancy"],
    async run(context) {
      const dialer = await context.dialAsPeer();
      for (const send of [wake, wakeBatch]) {
        const queue = context.uniqueName("every");
        const pops = await parkForEach(context, [undefined, randomUUID(), randomUUID()], queue);
        await dialer.send(send({ queue, partition: "" }));
        await expectAllPopped(context, pops, "by a frame without a tenant");
      }
    },
  },
  {
    id: "tenants/absent-is-every-tenant-configuration",
    requirements: ["TEN-2", "CFG-1"],
    level: "must",
    sentence:
      "A changed configuration without a tenant makes the receiver forget what it has cached of the queues of that name of every tenant.",
    topology: "tenancy",
    needs: ["broker", "tenancy"],
    async run(context) {
      const [judged, silent] = context.twoNodes;
      const queue = context.uniqueName("every");
      const names = [{ queue }, { queue, tenant: randomUUID() }];
      for (const name of names) await cacheLongLease(context, { judged, silent, ...name });
      for (const name of names) await shortenLease(context, silent, name);
      const dialer = await context.dialAsPeer();
      await context.expectReceived(1, () => dialer.send(frame(QUEUE_CONFIG_SET, { queue })));
      await Promise.all(names.map((name) =>
        expectShortLeases(
          context,
          { judged, silent, ...name },
          `as ${tenantOf(name)} configured it and a frame of type 10 without a tenant said`,
        )
      ));
    },
  },
  {
    id: "tenants/garbled-is-absent",
    requirements: ["TEN-3", "TEN-2"],
    level: "must",
    sentence:
      "A tenant that is empty, no string, or no UUID of 8-4-4-4-12 hex digits is taken as none: the pops of every tenant are woken.",
    topology: "tenancy",
    needs: ["broker", "tenancy"],
    run: (context) => expectGarbledWakes(context, randomUUID()),
  },
  {
    id: "tenants/uppercase-hex",
    requirements: ["TEN-3", "TEN-4"],
    level: "must",
    sentence: "A tenant in uppercase hex is the same tenant, and that one alone.",
    topology: "tenancy",
    needs: ["broker", "tenancy"],
    async run(context) {
      const [named, other] = [randomUUID(), randomUUID()];
      const dialer = await context.dialAsPeer();
      for (const send of [wake, wakeBatch]) {
        const queue = context.uniqueName("uppercase");
        const [right, wrong] = await parkForEach(context, [named, other], queue);
        await expectUntouched(context, dialer, {
          untouched: [wrong!],
          act: async () => {
            await dialer.send(send({ queue, partition: "", tenant: named.toUpperCase() }));
            await expectPopped(context, right!, "the pop of a tenant named in uppercase to wake");
          },
          why: `the frame named tenant ${named}, in uppercase`,
        });
        await dialer.send(send({ queue, partition: "", tenant: other }));
        await expectAllPopped(context, [wrong!], "by a frame that names its tenant");
      }
    },
  },
  {
    id: "tenants/named-touches-one",
    requirements: ["TEN-4"],
    level: "must",
    sentence:
      "A wake that names a tenant wakes the pops of that one, and not those of others on a queue of the same name.",
    topology: "tenancy",
    needs: ["broker", "tenancy"],
    async run(context) {
      const [one, two] = [randomUUID(), randomUUID()];
      const dialer = await context.dialAsPeer();
      for (const send of [wake, wakeBatch]) {
        const queue = context.uniqueName("named");
        const pops = await parkForEach(context, [undefined, one, two], queue);
        // The default tenant is named last and first, so that it is seen from both sides.
        const order = send === wake ? [one, two, DEFAULT_TENANT] : [DEFAULT_TENANT, two, one];
        let rest: readonly ParkedPop[] = pops;
        for (const tenant of order) {
          const isNamed = ({ request }: ParkedPop) => (request.tenant ?? DEFAULT_TENANT) === tenant;
          const named = rest.filter(isNamed);
          rest = rest.filter((each) => !isNamed(each));
          await expectUntouched(context, dialer, {
            untouched: rest,
            act: async () => {
              await dialer.send(send({ queue, partition: "", tenant }));
              await expectAllPopped(context, named, "by a frame that names its tenant");
            },
            why: `the frame named tenant ${tenant}`,
          });
        }
      }
    },
  },
  {
    id: "tenants/off-other-touches-nothing",
    requirements: ["TEN-4"],
    level: "must",
    sentence:
      "With tenancy off, a wake that names a tenant other than the default one wakes nobody.",
    topology: "bystander",
    needs: ["broker"],
    async run(context) {
      const dialer = await context.dialAsPeer();
      const queue = context.uniqueName("other");
      const pops = await parkForEach(context, [undefined], queue);
      await expectUntouched(context, dialer, {
        untouched: pops,
        act: async () => {
          for (const send of [wake, wakeBatch]) {
            await dialer.send(send({ queue, partition: "", tenant: FOREIGN_TENANT }));
            await dialer.send(send({ queue, partition: "Default", tenant: randomUUID() }));
          }
        },
        why: "the frames named other tenants, and tenancy is off",
      });
      await dialer.send(wake({ queue, partition: "", tenant: DEFAULT_TENANT }));
      await expectAllPopped(context, pops, "by a frame that names the default tenant");
    },
  },
  {
    id: "tenants/off-absent-is-default",
    requirements: ["TEN-5"],
    level: "must",
    sentence: "With tenancy off, a wake without a tenant wakes the pops of the queue.",
    topology: "bystander",
    needs: ["broker"],
    async run(context) {
      const dialer = await context.dialAsPeer();
      for (const send of [wake, wakeBatch]) {
        const queue = context.uniqueName("absent");
        const pops = await parkForEach(context, [undefined], queue);
        await dialer.send(send({ queue, partition: "" }));
        await expectAllPopped(context, pops, "by a frame without a tenant");
      }
    },
  },
  {
    id: "tenants/off-garbled-is-default",
    requirements: ["TEN-3", "TEN-5"],
    level: "must",
    sentence: "With tenancy off, a wake whose tenant is none wakes the pops of the queue.",
    topology: "bystander",
    needs: ["broker"],
    run: (context) => expectGarbledWakes(context, undefined),
  },
];

interface Wake {
  readonly queue: string;
  readonly partition: string;
  readonly tenant?: unknown;
}

function wake(item: Wake): Uint8Array {
  return frame(MESSAGE_AVAILABLE, item);
}

function wakeBatch(item: Wake): Uint8Array {
  return frame(MESSAGE_AVAILABLE_BATCH, { items: [item] });
}

function tenantOf({ tenant }: { tenant?: string }): string {
  return tenant === undefined ? "the default tenant" : `tenant ${tenant}`;
}

/** Parks a pop of each tenant beside a message, all on queues of one name. */
async function parkForEach(
  context: CaseContext,
  tenants: readonly (string | undefined)[],
  queue: string,
): Promise<ParkedPop[]> {
  const [judged, silent] = context.twoNodes;
  return await Promise.all(tenants.map((tenant) =>
    parkBesideMessage(context, {
      judged,
      silent,
      queue,
      ...(tenant === undefined ? {} : { tenant }),
    })
  ));
}

async function expectAllPopped(
  context: CaseContext,
  pops: readonly ParkedPop[],
  how: string,
): Promise<void> {
  for (const pop of pops) {
    await expectPopped(context, pop, `the pop of ${tenantOf(pop.request)} to be woken ${how}`);
  }
}

/** Does something that must leave these pops waiting, and shows that a frame behind it has its effect. */
async function expectUntouched(
  context: CaseContext,
  dialer: PeerDialer,
  { untouched, act, why }: {
    untouched: readonly ParkedPop[];
    act: () => Promise<void>;
    why: string;
  },
): Promise<void> {
  const queue = context.uniqueName("behind");
  const [marker] = await parkForEach(context, [undefined], queue);
  await act();
  await dialer.send(wake({ queue, partition: "", tenant: DEFAULT_TENANT }));
  await expectPopped(context, marker!, "the pop of another queue to be woken by a frame behind");
  await lookTwice(context, context.node);
  for (const pop of untouched) expectParked(pop, `it is of ${tenantOf(pop.request)}, and ${why}`);
}

/** Wakes whose tenant is none, each for a queue of its own: every pop must be woken. */
async function expectGarbledWakes(context: CaseContext, tenant: string | undefined): Promise<void> {
  const scenes = await Promise.all(GARBLED.map(async (garbled, i) => {
    const queue = context.uniqueName("garbled");
    const [pop] = await parkForEach(context, [tenant], queue);
    const item = { queue, partition: "", tenant: garbled };
    return { garbled, pop: pop!, bytes: i % 2 === 0 ? wake(item) : wakeBatch(item) };
  }));
  const dialer = await context.dialAsPeer();
  for (const { bytes } of scenes) await dialer.send(bytes);
  for (const { garbled, pop } of scenes) {
    await expectPopped(
      context,
      pop,
      `the pop of ${tenantOf(pop.request)} to be woken by a frame whose tenant is ${
        JSON.stringify(garbled)
      }, which counts as none`,
    );
  }
}

/** Makes the node say what there is to say of a queue, and looks at the tenant of each frame. */
async function expectNamed(
  context: CaseContext,
  name: QueueName,
  tenant: string,
): Promise<void> {
  const { node, peer } = context;
  await context.untilDialled();
  const mark = peer.frames.length;
  const seen = () =>
    peer.frames.slice(mark).flatMap(namedBy).filter(({ queue }) => queue === name.queue);
  const untilSaid = (types: readonly number[], after: string) =>
    context.until(
      `a frame of type ${types.join(" or ")} for queue "${name.queue}" ${after}`,
      seen,
      (all) => all.some(({ frame: { type } }) => types.includes(type)),
      { describe: (all) => `${all.length} frames of other types for it` },
    );
  const wakes = [MESSAGE_AVAILABLE, MESSAGE_AVAILABLE_BATCH];
  if (context.capabilities.has("notify") && name.tenant === undefined) {
    await context.hint(node, name);
    await untilSaid(wakes, "after POST /internal/api/notify");
  }
  if (context.capabilities.has("broker")) {
    const items = ["one", "two"].map((partition) => ({ queue: name.queue, partition }));
    await context.push(node, items, name);
    await untilSaid(wakes, "after a push");
    await configure(context, node, { ...name, leaseTime: 60 });
    await untilSaid([QUEUE_CONFIG_SET], "after it was configured");
    await deleteQueue(context, node, name);
    await untilSaid([QUEUE_CONFIG_DELETE], "after it was deleted");
  }
  for (const named of seen()) {
    expectEqual(
      `the tenant of ${typeName(named.frame.type)} for queue "${name.queue}"`,
      named.tenant,
      tenant,
    );
  }
}

/** The queues that a frame names, with their tenants. */
function namedBy(
  received: ReceivedFrame,
): { queue: unknown; tenant: unknown; frame: ReceivedFrame }[] {
  const hints = [...wakesOf([received]), ...dirtyHintsOf([received])];
  if (received.type !== QUEUE_CONFIG_SET && received.type !== QUEUE_CONFIG_DELETE) return hints;
  const { queue, tenant } = (received.json ?? {}) as Record<string, unknown>;
  return [{ queue, tenant, frame: received }];
}
