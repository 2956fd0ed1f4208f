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
  const problems: string[] = []
  const ask = async <T>(rpc: string, call: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await call
    } catch (error) {
      problems.push(`${rpc} failed: ${statusText(error)}`)
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
  const facts = {
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
  return { ...facts, problems: [...problems, ...contradictions(facts)], remarks: remarksOn(facts) }
}

type Facts = Omit<DriverReport, 'problems' | 'remarks'>

/** What the CSI specification forbids, or what makes our jobs impossible. Pure. */
export function contradictions(facts: Facts): string[] {
  const { name, version, ready, plugin, controller, node, nodeId, topology } = facts
  const has = (list: readonly string[], capability: string) => list.includes(capability)
  const rules: readonly (readonly [boolean, string])[] = [
    [
      !/^[a-zA-Z0-9]([-a-zA-Z0-9.]{0,61}[a-zA-Z0-9])?$/.test(name),
      `the name "${name}" is not a domain name of at most 63 characters`,
    ],
    [version === '', 'vendor_version is empty'],
    [!ready, 'Probe says it is not ready'],
    [nodeId === '', 'NodeGetInfo returns an empty node_id'],
    [(nodeId?.length ?? 0) > 256, 'node_id is longer than 256 bytes'],
    [
      has(plugin, 'VOLUME_ACCESSIBILITY_CONSTRAINTS') && topology === undefined,
      'VOLUME_ACCESSIBILITY_CONSTRAINTS is declared, but NodeGetInfo returns no topology: no volume could be scheduled',
    ],
    [
      !has(plugin, 'VOLUME_ACCESSIBILITY_CONSTRAINTS') && topology !== undefined,
      'NodeGetInfo returns a topology without VOLUME_ACCESSIBILITY_CONSTRAINTS: it is ignored',
    ],
    [
      has(controller, 'LIST_VOLUMES_PUBLISHED_NODES') && !has(controller, 'LIST_VOLUMES'),
      'LIST_VOLUMES_PUBLISHED_NODES is declared without LIST_VOLUMES',
    ],
    [
      has(controller, 'PUBLISH_READONLY') && !has(controller, 'PUBLISH_UNPUBLISH_VOLUME'),
      'PUBLISH_READONLY is declared without PUBLISH_UNPUBLISH_VOLUME',
    ],
    [
      controller.some((each) => /SNAPSHOT/.test(each)) && !has(controller, 'CREATE_DELETE_SNAPSHOT'),
      'snapshots can be listed or read, but not created: CREATE_DELETE_SNAPSHOT is missing',
    ],
    [has(node, 'VOLUME_CONDITION') && !has(node, 'GET_VOLUME_STATS'), 'VOLUME_CONDITION without GET_VOLUME_STATS'],
  ]
  return rules.flatMap(([broken, sentence]) => (broken ? [sentence] : []))
}

function remarksOn({ plugin, controller, node }: Facts): string[] {
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
