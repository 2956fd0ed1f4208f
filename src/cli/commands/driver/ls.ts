// `hawser driver ls`: which CSI drivers are there, on which nodes, and what uses them?
import { buildCommand } from '@stricli/core'
import type { CSIDriver, CSINode, PersistentVolume, StorageClass } from '../../../api/generated/types.ts'
import { isForbidden, isNotFound } from '../../../api/status-error.ts'
import type { Client } from '../../../client/client.ts'
import type { Cause } from '../../../why/causes.ts'
import type { DriverTrouble } from '../../../why/driver-links.ts'
import { driversInTrouble } from '../../../why/driver-links.ts'
import type { ConnectFlags } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
import { exitCodes } from '../../exit-codes.ts'
import type { OutputForm } from '../../output.ts'
import { json, outputFlag, table, yaml } from '../../output.ts'

interface Flags extends ConnectFlags {
  readonly output: OutputForm
}

interface DriverFacts {
  readonly name: string
  /** Nodes where it is registered now. */
  readonly nodes: readonly string[]
  readonly classes: readonly string[]
  readonly volumes: number
  /** Absent: there is no CSIDriver object, and volumes are attached. */
  readonly attachRequired?: boolean
  /** What is wrong with its processes; empty when all answer. Absent: we may not see it. */
  readonly troubles?: readonly DriverTrouble[]
}

export const ls = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'List CSI drivers',
    fullDescription: [
      'A driver without NODES is registered nowhere: its volumes cannot be mounted. STATUS is what the server and the nodes found',
      'when they last called it; what is wrong is told below the list. Exit code 4 when a driver cannot be used.',
      '',
      'Examples:',
      '  hawser driver ls',
      '  hawser driver ls -o json',
    ].join('\n'),
  },
  parameters: { flags: { ...connectFlags, output: outputFlag }, aliases: { n: 'namespace', o: 'output' } },
  async func(flags) {
    using connection = connect(this, flags)
    const { client } = connection
    const [drivers, nodes, classes, volumes] = await Promise.all([
      client.list('CSIDriver'),
      client.list('CSINode'),
      client.list('StorageClass'),
      client.list('PersistentVolume'),
    ])
    const troubles = await troublesOf(client)
    const all = driverFacts(drivers.items, nodes.items, classes.items, volumes.items).map((each) => ({
      ...each,
      ...(troubles === undefined ? {} : { troubles: troubles.filter(({ driver }) => driver === each.name) }),
    }))
    if (troubles !== undefined && troubles.length > 0) this.fail(exitCodes.waiting)
    if (flags.output === 'json') return this.print(json(all))
    if (flags.output === 'yaml') return this.print(yaml(all))
    if (flags.output === 'name') return all.forEach(({ name }) => this.print(`csidriver/${name}`))
    if (all.length === 0) return this.note('no drivers; add one: hawser up --csi-driver NAME=SOCKET')
    this.print(table(['NAME', 'STATUS', 'NODES', 'CLASSES', 'VOLUMES', 'ATTACH'], all.map(cells)))
    for (const { sentence, node, since } of troubles ?? [])
      this.print(
        `${sentence}${node === undefined ? '' : ` (node ${node})`}${since === undefined ? '' : `, since ${since}`}`,
      )
  },
})

/** Undefined for those who may not read operations. */
async function troublesOf(client: Client): Promise<readonly DriverTrouble[] | undefined> {
  try {
    return driversInTrouble((await client.list('Operation')).items)
  } catch (error) {
    if (isForbidden(error) || isNotFound(error)) return undefined
    throw error
  }
}

/** A driver is known by its object, by a node that has it, or by a volume; a class may name what is no driver. */
function driverFacts(
  drivers: readonly CSIDriver[],
  nodes: readonly CSINode[],
  classes: readonly StorageClass[],
  volumes: readonly PersistentVolume[],
): readonly DriverFacts[] {
  const onNodes = nodes.flatMap(({ metadata, spec }) => spec.drivers.map(({ name }) => ({ name, node: metadata.name })))
  const ofVolumes = volumes.flatMap(({ spec }) => spec?.csi?.driver ?? [])
  const names = new Set([
    ...drivers.map(({ metadata }) => metadata.name),
    ...onNodes.map(({ name }) => name),
    ...ofVolumes,
  ])
  return [...names].toSorted().map((name) => {
    const object = drivers.find(({ metadata }) => metadata.name === name)
    return {
      name,
      nodes: onNodes.filter((each) => each.name === name).map(({ node }) => node),
      classes: classes.filter(({ provisioner }) => provisioner === name).map(({ metadata }) => metadata.name),
      volumes: ofVolumes.filter((each) => each === name).length,
      ...(object === undefined ? {} : { attachRequired: object.spec.attachRequired ?? true }),
    }
  })
}

function statusOf({ nodes, troubles }: DriverFacts): string {
  if (troubles === undefined) return 'unknown'
  const [first] = troubles
  if (first !== undefined) return statuses[first.cause] ?? 'away'
  return nodes.length === 0 ? 'unregistered' : 'ready'
}

const statuses: Readonly<Partial<Record<Cause, string>>> = { driverSilent: 'silent', driverUnready: 'unready' }

function cells(facts: DriverFacts): string[] {
  const { name, nodes, classes, volumes, attachRequired } = facts
  return [
    name,
    statusOf(facts),
    nodes.join(',') || '-',
    classes.join(',') || '-',
    String(volumes),
    attachRequired === false ? 'no' : 'yes',
  ]
}
