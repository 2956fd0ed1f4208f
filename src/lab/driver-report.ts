// Is this driver fit for use? Identity, readiness, capabilities and topology, asked with reads only, and what is wrong.
import type { Clock } from '../clock/clock.ts'
import { statusText } from '../csi/codes.ts'
import { createControllerCalls } from '../csi/controller.ts'
import { createIdentityCalls } from '../csi/identity.ts'
import { createNodeCalls } from '../csi/node.ts'
import type { Transport } from '../csi/service.ts'
import { createWire } from '../csi/service.ts'

export interface DriverReport {
  readonly name: string
  readonly version: string
  readonly ready: boolean
  readonly plugin: readonly string[]
  readonly controller: readonly string[]
  readonly node: readonly string[]
  readonly nodeId?: string
  readonly maxVolumes?: string
  readonly topology?: Readonly<Record<string, string>>
  /** Calls that failed though they only read: name → status and words. */
  readonly failures: Readonly<Record<string, string>>
  /** What a driver must not do, or cannot be used with. */
  readonly problems: readonly string[]
  /** What is allowed and may surprise. */
  readonly remarks: readonly string[]
}

const timeoutMs = 10_000

export async function inspectDriver(
  deps: { readonly transport: Transport; readonly clock: Clock },
  signal: AbortSignal,
): Promise<DriverReport> {
  const wire = createWire(deps.transport)
  const options = { wire, clock: deps.clock, timeoutMs }
  const identity = createIdentityCalls(options)
  const failures: Record<string, string> = {}
  const ask = async <T>(rpc: string, call: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await call
    } catch (error) {
      failures[rpc] = statusText(error)
      return otherwise
    }
  }
  // Without a name there is nothing to look at: this error is the answer.
  const info = await identity.info(signal)
  const ready = await ask('Probe', identity.probe(signal), false)
  const plugin = await ask('GetPluginCapabilities', identity.capabilities(signal), new Set())
  const controllerCalls = createControllerCalls(options)
  const controller = plugin.has('CONTROLLER_SERVICE')
    ? await ask('ControllerGetCapabilities', controllerCalls.capabilities(signal), new Set())
    : new Set<never>()
  const nodeCalls = createNodeCalls(options)
  const node = await ask('NodeGetCapabilities', nodeCalls.capabilities(signal), new Set())
  const nodeInfo = await ask('NodeGetInfo', nodeCalls.info(signal), undefined)
  const facts: DriverFacts = {
    failures,
    name: info.name,
    version: info.version,
    ready,
    plugin: [...plugin].toSorted(),
    controller: [...controller].toSorted(),
    node: [...node].toSorted(),
    ...(nodeInfo === undefined ? {} : { nodeId: nodeInfo.nodeId, maxVolumes: String(nodeInfo.maxVolumes) }),
    ...(nodeInfo?.topology === undefined ? {} : { topology: nodeInfo.topology }),
  }
  if (controller.has('LIST_VOLUMES')) await ask('ListVolumes', controllerCalls.listVolumes(signal), [])
  if (controller.has('GET_CAPACITY'))
    await ask('GetCapacity', controllerCalls.capacity({ parameters: {} }, signal), undefined)
  const failed = Object.entries(failures).map(([rpc, status]) => `${rpc} failed: ${status}`)
  return { ...facts, problems: [...failed, ...contradictions(facts)], remarks: remarksOn(facts) }
}

export type DriverFacts = Omit<DriverReport, 'problems' | 'remarks'>

/** What a driver must not say of itself; `driver check` and the lab ask the same. */
export interface FactRule {
  /** Stable: reports and baselines name it. */
  readonly id: string
  readonly title: string
  readonly call: string
  /** What the CSI specification says there. */
  readonly says: string
  /** The sentence for people; undefined when all is well. */
  problem(facts: DriverFacts): string | undefined
}

const has = (list: readonly string[], capability: string) => list.includes(capability)

const identityRules: readonly FactRule[] = [
  {
    id: 'identity/name',
    title: 'the name is a domain name of at most 63 characters',
    call: 'GetPluginInfo',
    says: 'name MUST follow domain name notation, 63 characters or less, beginning and ending alphanumeric',
    problem: ({ name }) =>
      /^[a-zA-Z0-9]([-a-zA-Z0-9.]{0,61}[a-zA-Z0-9])?$/.test(name)
        ? undefined
        : `the name "${name}" is not a domain name of at most 63 characters`,
  },
  {
    id: 'identity/version',
    title: 'the version is not empty',
    call: 'GetPluginInfo',
    says: 'vendor_version is REQUIRED',
    problem: ({ version }) => (version === '' ? 'vendor_version is empty' : undefined),
  },
  {
    id: 'identity/ready',
    title: 'the driver is ready',
    call: 'Probe',
    says: 'ready false means that the plugin has started and cannot serve calls yet',
    problem: ({ ready }) => (ready ? undefined : 'Probe says it is not ready'),
  },
]

const nodeRules: readonly FactRule[] = [
  {
    id: 'node-info/id',
    title: 'the node id is 1 to 256 bytes long',
    call: 'NodeGetInfo',
    says: 'node_id is REQUIRED and at most 256 bytes long',
    problem: ({ nodeId }) => {
      if (nodeId === '') return 'NodeGetInfo returns an empty node_id'
      return Buffer.byteLength(nodeId ?? '') > 256 ? 'node_id is longer than 256 bytes' : undefined
    },
  },
  {
    id: 'node-info/limit',
    title: 'the limit of volumes per node is not negative',
    call: 'NodeGetInfo',
    says: 'max_volumes_per_node MUST NOT be negative',
    problem: ({ maxVolumes }) =>
      BigInt(maxVolumes ?? '0') < 0n ? `max_volumes_per_node is ${maxVolumes}, below 0` : undefined,
  },
  {
    id: 'node-info/topology-missing',
    title: 'a driver that claims VOLUME_ACCESSIBILITY_CONSTRAINTS says where its node is',
    call: 'NodeGetInfo',
    says: 'accessible_topology is REQUIRED if the plugin claims VOLUME_ACCESSIBILITY_CONSTRAINTS',
    problem: ({ plugin, topology }) =>
      has(plugin, 'VOLUME_ACCESSIBILITY_CONSTRAINTS') && topology === undefined
        ? 'VOLUME_ACCESSIBILITY_CONSTRAINTS is declared, but NodeGetInfo returns no topology: no volume could be scheduled'
        : undefined,
  },
  {
    id: 'node-info/topology-unclaimed',
    title: 'a driver that tells a topology claims VOLUME_ACCESSIBILITY_CONSTRAINTS',
    call: 'NodeGetInfo',
    says: 'accessible_topology is for plugins that claim VOLUME_ACCESSIBILITY_CONSTRAINTS',
    problem: ({ plugin, topology }) =>
      !has(plugin, 'VOLUME_ACCESSIBILITY_CONSTRAINTS') && topology !== undefined
        ? 'NodeGetInfo returns a topology without VOLUME_ACCESSIBILITY_CONSTRAINTS: it is ignored'
        : undefined,
  },
]

const capabilityRules: readonly FactRule[] = [
  {
    id: 'capabilities/published-nodes',
    title: 'LIST_VOLUMES_PUBLISHED_NODES comes with LIST_VOLUMES',
    call: 'ControllerGetCapabilities',
    says: 'LIST_VOLUMES_PUBLISHED_NODES is about the answers of ListVolumes',
    problem: ({ controller }) =>
      has(controller, 'LIST_VOLUMES_PUBLISHED_NODES') && !has(controller, 'LIST_VOLUMES')
        ? 'LIST_VOLUMES_PUBLISHED_NODES is declared without LIST_VOLUMES'
        : undefined,
  },
  {
    id: 'capabilities/publish-readonly',
    title: 'PUBLISH_READONLY comes with PUBLISH_UNPUBLISH_VOLUME',
    call: 'ControllerGetCapabilities',
    says: 'PUBLISH_READONLY is about a field of ControllerPublishVolume',
    problem: ({ controller }) =>
      has(controller, 'PUBLISH_READONLY') && !has(controller, 'PUBLISH_UNPUBLISH_VOLUME')
        ? 'PUBLISH_READONLY is declared without PUBLISH_UNPUBLISH_VOLUME'
        : undefined,
  },
  {
    id: 'capabilities/snapshots',
    title: 'snapshots that can be listed or read can be created',
    call: 'ControllerGetCapabilities',
    says: 'LIST_SNAPSHOTS and GET_SNAPSHOT are about snapshots that CreateSnapshot makes',
    problem: ({ controller }) =>
      controller.some((each) => /SNAPSHOT/.test(each)) && !has(controller, 'CREATE_DELETE_SNAPSHOT')
        ? 'snapshots can be listed or read, but not created: CREATE_DELETE_SNAPSHOT is missing'
        : undefined,
  },
  {
    id: 'capabilities/condition',
    title: 'VOLUME_CONDITION of the node comes with GET_VOLUME_STATS',
    call: 'NodeGetCapabilities',
    says: 'the condition of a volume is a field of the answer of NodeGetVolumeStats',
    problem: ({ node }) =>
      has(node, 'VOLUME_CONDITION') && !has(node, 'GET_VOLUME_STATS')
        ? 'VOLUME_CONDITION without GET_VOLUME_STATS'
        : undefined,
  },
]

export const factRules: readonly FactRule[] = [...identityRules, ...nodeRules, ...capabilityRules]

/** What the CSI specification forbids, or what makes our jobs impossible. Pure. */
export function contradictions(facts: DriverFacts): string[] {
  return factRules.flatMap((rule) => rule.problem(facts) ?? [])
}

function remarksOn({ plugin, controller, node }: DriverFacts): string[] {
  const rules: readonly (readonly [boolean, string])[] = [
    [
      !plugin.includes('CONTROLLER_SERVICE'),
      'no controller service: volumes must be created by hand (static provisioning)',
    ],
    [
      plugin.includes('CONTROLLER_SERVICE') && !controller.includes('CREATE_DELETE_VOLUME'),
      'no dynamic provisioning (CREATE_DELETE_VOLUME)',
    ],
    [!controller.includes('PUBLISH_UNPUBLISH_VOLUME'), 'no attach: its CSIDriver should say attachRequired: false'],
    [!controller.includes('EXPAND_VOLUME') && !node.includes('EXPAND_VOLUME'), 'volumes cannot be expanded'],
    [!controller.includes('CREATE_DELETE_SNAPSHOT'), 'no snapshots'],
    [!node.includes('GET_VOLUME_STATS'), 'no usage figures (GET_VOLUME_STATS)'],
  ]
  return rules.flatMap(([holds, sentence]) => (holds ? [sentence] : []))
}
