// `hawser driver serve`: the built-in driver as a process of its own, for use with any CSI orchestrator.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { bytesOfQuantity } from '../../../api/quantity.ts'
import { validateDriverName } from '../../../api/validation/common.ts'
import type { Context } from '../../context.ts'
import { overcommitFlag } from '../../node-flags.ts'
import { sizeFrom } from '../volume/options.ts'

interface Flags {
  readonly socket: string
  readonly data: string
  readonly name?: string
  readonly node?: string
  readonly mode: 'local' | 'shared'
  readonly capacity?: string
  readonly overcommit?: number
}

export const serve = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Run the built-in driver on a socket ("hawser up" does this by itself)',
    fullDescription: [
      'Runs the built-in CSI driver (image files on loop devices) until SIGINT or SIGTERM. Needs root.',
      '',
      'Examples:',
      '  hawser driver serve --socket /run/hawser/csi.sock --data /srv/volumes',
      '  hawser driver serve --socket /run/hawser/csi.sock --data /srv/volumes --capacity 100Gi',
      '  hawser driver serve --name slow.example.com --socket /run/slow/csi.sock --data /mnt/disk2   # a second disk',
    ].join('\n'),
  },
  parameters: {
    flags: {
      socket: { kind: 'parsed', parse: String, placeholder: 'PATH', brief: 'Path of the socket' },
      data: { kind: 'parsed', parse: String, placeholder: 'DIR', brief: 'Directory of the images' },
      name: {
        kind: 'parsed',
        parse: nameFrom,
        optional: true,
        placeholder: 'NAME',
        brief: 'Name of the driver, which classes give as provisioner (default: local.hawser.dev)',
      },
      node: { kind: 'parsed', parse: String, optional: true, placeholder: 'ID', brief: 'Node id (default: host name)' },
      mode: {
        kind: 'enum',
        values: ['local', 'shared'],
        default: 'local',
        brief: 'Volumes of this node only, or shared by nodes of this machine',
      },
      capacity: {
        kind: 'parsed',
        parse: sizeFrom,
        optional: true,
        placeholder: 'SIZE',
        brief: 'Maximum size of all volumes together',
      },
      overcommit: overcommitFlag,
    },
  },
  async func(flags) {
    const { serveBuiltInDriver } = await import('../../../main/built-in-driver.ts')
    const stop = Promise.withResolvers<NodeJS.Signals>()
    process.once('SIGINT', stop.resolve).once('SIGTERM', stop.resolve)
    await using _served = await serveBuiltInDriver({
      socket: resolve(flags.socket),
      dataDirectory: resolve(flags.data),
      nodeId: flags.node ?? hostname().toLowerCase(),
      mode: flags.mode,
      ...(flags.name === undefined ? {} : { name: flags.name }),
      ...(flags.overcommit === undefined ? {} : { overcommit: flags.overcommit }),
      ...(flags.capacity === undefined ? {} : { capacityBytes: bytesOfQuantity(flags.capacity) }),
    })
    this.print(`serving on ${resolve(flags.socket)}`)
    const signal = await stop.promise
    this.note(`${signal}: stopping (mounts stay as they are)`)
  },
})

/** Drivers are named like hosts, and the name is part of a label's key (`topology.NAME/node`). */
function nameFrom(text: string): string {
  const [problem] = validateDriverName(text, '--name')
  if (problem !== undefined) throw new SyntaxError(`"${text}" cannot name a driver; use a name like slow.example.com`)
  return text
}
