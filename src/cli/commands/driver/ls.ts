// `hawser driver ls`: which CSI drivers are there, on which nodes, and what uses them?
import { buildCommand } from '@stricli/core'
import type { CSIDriver, CSINode, PersistentVolume, StorageClass } from '../../../api/generated/types.ts'
import type { ConnectFlags } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
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
}

export const ls = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'List CSI drivers',
    fullDescription: [
      'A driver without NODES is registered nowhere: its volumes cannot be mounted.',
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
    const all = driverFacts(drivers.items, nodes.items, classes.items, volumes.items)
    if (flags.output === 'json') return this.print(json(all))
    if (flags.output === 'yaml') return this.print(yaml(all))
    if (flags.output === 'name') return all.forEach(({ name }) => this.print(`csidriver/${name}`))
    if (all.length === 0) return this.note('no drivers; add one: hawser up --csi-driver NAME=SOCKET')
    this.print(table(['NAME', 'NODES', 'CLASSES', 'VOLUMES', 'ATTACH'], all.map(cells)))
  },
})

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

function cells({ name, nodes, classes, volumes, attachRequired }: DriverFacts): string[] {
  return [
    name,
    nodes.join(',') || '-',
    classes.join(',') || '-',
    String(volumes),
    attachRequired === false ? 'no' : 'yes',
  ]
}
