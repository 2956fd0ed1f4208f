// `hawser volume create`: a claim, and the wait until its volume is there.
import { buildCommand } from '@stricli/core'
import { namesOf, storageClassFlag } from '../../completions.ts'
import type { ConnectFlags } from '../../connect.ts'
import { connect, connectFlags } from '../../connect.ts'
import type { Context } from '../../context.ts'
import { timeoutFlag, waitFlag } from '../../wait.ts'
import type { AccessMode } from '../../../api/access-modes.ts'
import { createClaim, modeFrom, nodeFlag, sizeFrom } from './options.ts'

interface Flags extends ConnectFlags {
  readonly size: string
  readonly class?: string
  readonly mode: AccessMode
  readonly block: boolean
  readonly from?: string
  readonly node?: string
  readonly wait: boolean
  readonly timeout: number
}

export const create = buildCommand<Flags, [string], Context>({
  docs: {
    brief: 'Create a volume',
    fullDescription: [
      'Creates a claim and waits until it is bound. With a WaitForFirstConsumer class, use --node to provision now.',
      '',
      'Examples:',
      '  hawser volume create data --size 1Gi',
      '  hawser volume create data --size 1Gi --node n2          # now, not with the first pod',
      '  hawser volume create shared --size 5Gi --mode RWX --class nfs',
      '  hawser volume create disk --size 1Gi --block',
      '  hawser volume create copy --size 1Gi --from data        # a clone of another claim',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      size: { kind: 'parsed', parse: sizeFrom, placeholder: 'SIZE', brief: 'Size: 500Mi, 1Gi, 2T' },
      class: storageClassFlag,
      mode: {
        kind: 'parsed',
        parse: modeFrom,
        default: 'RWO',
        placeholder: 'MODE',
        brief: 'Access mode: RWO, ROX, RWX or RWOP',
      },
      block: { kind: 'boolean', default: false, brief: 'A raw block device instead of a filesystem' },
      from: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'CLAIM',
        proposeCompletions: namesOf('PersistentVolumeClaim'),
        brief: 'Create it as a clone of this claim',
      },
      node: nodeFlag,
      wait: waitFlag,
      timeout: timeoutFlag,
    },
    aliases: { n: 'namespace', s: 'size', c: 'class' },
    positional: { kind: 'tuple', parameters: [{ parse: String, placeholder: 'NAME', brief: 'Name of the claim' }] },
  },
  async func(flags, name) {
    using connection = connect(this, flags)
    const { from, wait, timeout, kubeconfig: _file, namespace: _space, ...rest } = flags
    const source = from === undefined ? {} : { from: { kind: 'PersistentVolumeClaim', name: from } }
    await createClaim(this, connection, { ...rest, name, ...source }, { wait, timeout })
  },
})
