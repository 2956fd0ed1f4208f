// `hawser volume export`: the files of a volume as a tar archive on stdout.
import { randomBytes } from 'node:crypto'
import { buildCommand } from '@stricli/core'
import { ignoreNotFound } from '../../../api/status-error.ts'
import { UsageError } from '../../../installation/config.ts'
import { claimArgument } from '../../completions.ts'
import type { ConnectFlags, Connection } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
import { Failed } from '../../errors.ts'
import { inNamespace } from '../../hints.ts'
import { runRemote, writerTo } from '../../remote.ts'
import { gatherVolume } from '../../volume-facts.ts'
import { catchInterrupts } from '../../interrupts.ts'
import { timeoutFlag, waitUntil } from '../../wait.ts'
import { podOf, started } from '../run.ts'

interface Flags extends ConnectFlags {
  readonly timeout: number
}

export const exportVolume = buildCommand<Flags, [string], Context>({
  docs: {
    brief: 'Write the files of a volume to stdout, as a tar archive',
    fullDescription: [
      'Mounts the claim read-only in a pod for as long as it takes. Needs the role admin.',
      'If programs write to the volume meanwhile, take a snapshot, restore it and export the restored volume.',
      '',
      'Examples:',
      '  hawser volume export data > data.tar',
      '  hawser volume export data | ssh backup tar -xf - -C /srv/data',
      '  hawser run --claim data:/data -- tar -xf - -C /data < data.tar       # and back',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags, timeout: { ...timeoutFlag, brief: 'Timeout until the volume is mounted' } },
    aliases: { n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [claimArgument],
    },
  },
  async func(flags, claim) {
    if (this.interactive)
      throw new UsageError(
        'an archive is not for a terminal',
        `hawser volume export ${claim}${inNamespace(flags.namespace)} > ${claim}.tar`,
      )
    using connection = connect(this, flags)
    const { client, namespace } = connection
    const facts = await gatherVolume(client, namespace, claim)
    if (facts.volumeMode === 'Block')
      throw new UsageError(`claim ${claim} is a block device and has no files`, 'read it in a pod of your own')
    const name = `export-${randomBytes(4).toString('hex')}`
    const mount = { claim, path: '/data', readOnly: true }
    // Where it is attached already: on another node the pod would wait until it is detached.
    const [node] = facts.attachedTo
    const where = node === undefined ? {} : { node }
    await client.create('Pod', podOf({ name, command: ['sleep', 'infinity'], claim: [mount], ...where }, namespace))
    // Whenever a signal comes, the pod must not stay.
    using interrupts = catchInterrupts()
    const { signal } = interrupts
    try {
      const wait = { kind: 'Pod', ref: { name, namespace }, timeoutMs: flags.timeout * 1_000, signal } as const
      await waitUntil(this, client, { ...wait, interrupts: 'handled' }, started)
      await archive(connection, name, signal)
    } catch (error) {
      throw signal.aborted ? interrupts.error(`the archive is incomplete; pod ${name} was deleted`) : error
    } finally {
      await client.remove('Pod', { name, namespace }, { gracePeriodSeconds: 0 }).catch(ignoreNotFound)
    }
  },
})

async function archive(connection: Connection, pod: string, signal: AbortSignal): Promise<void> {
  const request = { pod, verb: 'exec', command: ['tar', '-cf', '-', '-C', '/data', '.'], tty: false } as const
  const streams = { stdout: writerTo(process.stdout), stderr: writerTo(process.stderr) }
  const code = await runRemote(connection, request, streams, signal)
  if (code !== 0) throw new Failed(`tar ended with ${code}: the archive is incomplete`)
}
