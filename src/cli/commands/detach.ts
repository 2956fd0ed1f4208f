// `hawser detach`: takes a volume from a node, only where that is safe, or by force with a reason that is written down.
import { hostname, userInfo } from 'node:os'
import { buildCommand } from '@stricli/core'
import { keyFor } from '../../api/meta.ts'
import { uniqueCsiVolumeName } from '../../api/names.ts'
import { claimKeysOf, hasEnded } from '../../api/pod-claims.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import { kinds } from '../../api/kinds.ts'
import type { Node, PersistentVolume, Pod, VolumeAttachment } from '../../api/generated/types.ts'
import { notFound } from '../../api/status-error.ts'
import type { Client } from '../../client/client.ts'
import { createRecorder } from '../../client/recorder.ts'
import { createSystemClock } from '../../clock/system-clock.ts'
import { UsageError } from '../../installation/config.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import { confirm, yesFlag } from '../confirm.ts'
import { namesOf } from '../completions.ts'
import type { ConnectFlags, Connection } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { Missing } from '../errors.ts'
import { exitCodes } from '../exit-codes.ts'
import { askAbout } from '../hints.ts'
import { slashed } from '../resources.ts'
import { timeoutFlag, waitFlag, waitUntil } from '../wait.ts'

interface Flags extends ConnectFlags {
  readonly force: boolean
  readonly reason?: string
  readonly yes: boolean
  readonly wait: boolean
  readonly timeout: number
}

export const detach = buildCommand<Flags, [string, string], Context>({
  docs: {
    brief: 'Detach a volume from a node, if that is safe',
    fullDescription: [
      'Refuses while pods on the node use the volume, the node reports it in use, or the node does not answer: two writers destroy data.',
      'If you know that it is safe (the machine is off), use --force --reason TEXT. Your name and the reason are recorded as an event.',
      'Usually not needed: volumes are detached automatically when no pod on the node uses them.',
      '',
      'Examples:',
      '  hawser detach pvc/data n2',
      '  hawser detach pv/pvc-0b1c n2',
      "  hawser detach pvc/data n2 --force --reason 'power supply pulled'",
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      force: { kind: 'boolean', default: false, brief: 'Detach even if it may be in use' },
      reason: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'TEXT',
        brief: 'Why it is safe (with --force)',
      },
      yes: yesFlag,
      wait: waitFlag,
      timeout: timeoutFlag,
    },
    aliases: { n: 'namespace', y: 'yes' },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, placeholder: 'VOLUME', brief: 'pvc/NAME, pv/NAME, or the name of one' },
        { parse: String, placeholder: 'NODE', proposeCompletions: namesOf('Node'), brief: 'The node' },
      ],
    },
  },
  async func(flags, word, nodeName) {
    if (flags.force && !flags.reason?.trim())
      throw new UsageError('--force needs a reason', "--reason 'why this is safe'")
    using connection = connect(this, flags)
    const volume = await volumeFrom(connection, word)
    const attachment = await attachmentOf(connection.client, volume, nodeName)
    const dangers = dangersOf(await look(connection.client, volume, nodeName), nodeName)
    if (dangers.length > 0 && !flags.force) {
      for (const danger of dangers) this.note(`  ${danger}`)
      this.note(`hawser: not detached: ${volume.metadata.name} may be in use on ${nodeName}`)
      this.note(`  try: delete the pods that use it, or read: ${askAbout('VolumeAttachment', attachment.metadata)}`)
      return this.fail(exitCodes.waiting)
    }
    const plan = [`detach ${volume.metadata.name} from ${nodeName}`, ...dangers.map((danger) => `  although ${danger}`)]
    if (dangers.length > 0) await confirm(this, plan, flags.yes)
    await carryOut(connection, attachment, { forced: dangers.length > 0, reason: flags.reason ?? 'asked by the user' })
    this.print(`volumeattachment/${attachment.metadata.name} deleted`)
    if (flags.wait) await untilDetached(this, connection.client, attachment, flags.timeout * 1_000)
  },
})

export interface AttachmentSituation {
  readonly node: Node | undefined
  /** Pods on the node that use the volume's claim and have not ended. */
  readonly pods: readonly Pod[]
  /** As the node's status names it. */
  readonly uniqueName: string | undefined
}

/** Every reason why a writer may still be there; empty means safe. Pure. */
export function dangersOf({ node, pods, uniqueName }: AttachmentSituation, nodeName: string): string[] {
  const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
  const inUse = node?.status?.volumesInUse ?? []
  return [
    ...pods.map(({ metadata }) => `pod ${metadata.namespace}/${metadata.name} on ${nodeName} uses it`),
    ...(node ? [] : [`there is no Node object ${nodeName}: its machine cannot be asked`]),
    ...(node && !ready ? [`node ${nodeName} is not ready: what it last said may be old`] : []),
    ...(uniqueName !== undefined && inUse.includes(uniqueName) ? [`node ${nodeName} says it has it mounted`] : []),
    ...(uniqueName === undefined && inUse.length > 0 ? [`node ${nodeName} has volumes mounted, maybe this one`] : []),
  ]
}

async function look(client: Client, volume: PersistentVolume, nodeName: string): Promise<AttachmentSituation> {
  const { claimRef, csi } = volume.spec ?? {}
  const [node, pods] = await Promise.all([
    getIfExists(client, 'Node', { name: nodeName }),
    client.list('Pod', { fieldSelector: `spec.nodeName=${nodeName}` }),
  ])
  const claim = claimRef?.name && keyFor(claimRef.namespace, claimRef.name)
  return {
    node,
    pods: pods.items.filter((pod) => claim && claimKeysOf(pod).includes(claim) && !hasEnded(pod)),
    uniqueName: csi && uniqueCsiVolumeName(csi),
  }
}

/** The record comes before the deed: annotations on the attachment and events that outlive it. */
async function carryOut(
  { client, transport }: Connection,
  attachment: VolumeAttachment,
  { forced, reason }: { readonly forced: boolean; readonly reason: string },
): Promise<void> {
  const who = await whoAmI(transport)
  const name = attachment.metadata.name
  const annotations = {
    'hawser.dev/detach-requested-by': who,
    'hawser.dev/detach-reason': reason,
    'hawser.dev/detach-forced': String(forced),
  }
  await client.patch('VolumeAttachment', { name }, { type: 'merge', body: { metadata: { annotations } } })
  const { persistentVolumeName } = attachment.spec.source
  const volume = persistentVolumeName && (await getIfExists(client, 'PersistentVolume', { name: persistentVolumeName }))
  {
    const log = createPinoLog({ level: 'error' })
    await using recorder = createRecorder({ client, clock: createSystemClock(), log, component: 'hawser-detach' })
    const message = `${forced ? 'Forced detach' : 'Detach'} from node ${attachment.spec.nodeName} asked by ${who}: ${reason}`
    const type = forced ? 'Warning' : 'Normal'
    recorder.event({ kind: 'VolumeAttachment', object: attachment }, type, 'ManualDetach', message)
    if (volume) recorder.event({ kind: 'PersistentVolume', object: volume }, type, 'ManualDetach', message)
    await recorder.flush()
  }
  await client.remove('VolumeAttachment', { name })
}

async function untilDetached(
  context: Context,
  client: Client,
  { metadata, spec }: VolumeAttachment,
  timeoutMs: number,
): Promise<void> {
  const name = metadata.name
  const left = `no longer waiting; the volume is still being detached from node ${spec.nodeName}`
  await waitUntil(context, client, { kind: 'VolumeAttachment', ref: { name }, timeoutMs, left }, (object) => {
    // Another uid: it was wanted again and attached anew.
    if (!object || object.metadata.uid !== metadata.uid) return { done: true, value: undefined }
    const error = object.status?.detachError?.message
    return {
      done: false,
      waiting: error ? `the driver fails, it is tried again: ${error}` : `${spec.attacher} detaches`,
    }
  })
  context.print(`detached from ${spec.nodeName}`)
}

async function volumeFrom({ client, namespace }: Connection, word: string): Promise<PersistentVolume> {
  const { kind, name } = word.includes('/') ? slashed(word) : { kind: undefined, name: word }
  if (kind !== undefined && kind !== 'PersistentVolume' && kind !== 'PersistentVolumeClaim')
    throw new UsageError(`${word} is neither a claim nor a volume`, 'hawser detach pvc/NAME NODE')
  if (kind !== 'PersistentVolumeClaim') {
    const found = await getIfExists(client, 'PersistentVolume', { name })
    if (found) return found
    if (kind === 'PersistentVolume') throw notFound(kinds.PersistentVolume, name)
  }
  const claim = await client.get('PersistentVolumeClaim', { name, namespace })
  const volumeName = claim.spec?.volumeName
  if (!volumeName)
    throw new UsageError(`claim ${name} has no volume`, askAbout('PersistentVolumeClaim', { name, namespace }))
  return client.get('PersistentVolume', { name: volumeName })
}

async function attachmentOf(client: Client, volume: PersistentVolume, nodeName: string): Promise<VolumeAttachment> {
  const { items } = await client.list('VolumeAttachment')
  const own = items.filter(({ spec }) => spec.source.persistentVolumeName === volume.metadata.name)
  const found = own.find(({ spec }) => spec.nodeName === nodeName)
  if (found) return found
  const nodes = own.map(({ spec }) => spec.nodeName).join(', ')
  throw new Missing(
    `volume ${volume.metadata.name} is not attached to ${nodeName}`,
    nodes ? `it is attached to: ${nodes}` : 'hawser get volumeattachments',
  )
}

/** The name the server knows us by, and the person at this machine. */
async function whoAmI(transport: Connection['transport']): Promise<string> {
  const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const answer = await transport.request({ method: 'POST', path, body }, AbortSignal.timeout(10_000)).catch(() => ({}))
  const { username = 'unknown' } = (answer as { status?: { userInfo?: { username?: string } } }).status?.userInfo ?? {}
  return `${username} (${userInfo().username}@${hostname()})`
}
