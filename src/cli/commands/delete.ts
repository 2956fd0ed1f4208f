// `hawser delete`: asks the server to delete objects and waits until they are gone, saying what holds them.
import { setTimeout as sleep } from 'node:timers/promises'
import { buildCommand } from '@stricli/core'
import { claimsOf } from '../../api/pod-claims.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import type { KindName } from '../../api/kinds.ts'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import type { Node, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { UsageError } from '../../installation/config.ts'
import { confirm, yesFlag } from '../confirm.ts'
import { objectArgument } from '../completions.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { askAbout } from '../hints.ts'
import { catchInterrupts } from '../interrupts.ts'
import { readManifests } from '../manifests.ts'
import { duration } from '../output.ts'
import { resourcesFrom } from '../resources.ts'
import { stillDeleted } from '../wait.ts'

interface Flags extends ConnectFlags {
  readonly file?: readonly string[]
  readonly all: boolean
  readonly wait: boolean
  readonly force: boolean
  readonly timeout: number
  readonly yes: boolean
}

interface Target {
  readonly kind: KindName
  readonly ref: ObjectRef
}

export const remove = buildCommand<Flags, string[], Context>({
  docs: {
    brief: 'Delete objects',
    fullDescription: [
      'Deletes objects and waits until they are removed. A claim stays until the pods that use it are deleted.',
      'With reclaim policy Delete, the data of a volume is deleted with its claim. Such data is listed before you confirm.',
      '',
      'Examples:',
      '  hawser delete pod/web',
      '  hawser delete pvc/data --yes',
      '  hawser delete -f manifests/',
      '  hawser delete pod/web --force',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      file: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        placeholder: 'FILE',
        brief: 'Delete the objects in these files',
      },
      all: { kind: 'boolean', default: false, brief: 'All objects of this type in the namespace' },
      wait: { kind: 'boolean', default: true, brief: 'Wait until they are removed' },
      force: {
        kind: 'boolean',
        default: false,
        brief: 'Pods only: do not wait for the node. Use it only if nothing of the pod runs any more',
      },
      timeout: { kind: 'parsed', parse: Number, default: '120', placeholder: 'SECONDS', brief: 'Timeout of --wait' },
      yes: yesFlag,
    },
    aliases: { f: 'file', n: 'namespace', y: 'yes' },
    positional: {
      kind: 'array',
      parameter: objectArgument('Objects to delete'),
    },
  },
  async func(flags, ...words) {
    using connection = connect(this, flags)
    const targets = await targetsOf(connection.client, connection.namespace, flags, words)
    const other = flags.force ? targets.find(({ kind }) => kind !== 'Pod') : undefined
    if (other)
      throw new UsageError(
        `only pods are deleted by force, not ${kinds[other.kind].singular}/${other.ref.name}`,
        'without --force',
      )
    const warnings = await dataLost(connection.client, targets)
    if (warnings.length > 0) await confirm(this, warnings, flags.yes)
    const grace = flags.force ? { gracePeriodSeconds: 0 } : {}
    for (const { kind, ref } of targets) {
      await connection.client.remove(kind, ref, { propagation: 'Background', ...grace })
      this.print(`${kinds[kind].singular}/${ref.name} deleted`)
    }
    if (!flags.wait) return
    for (const target of targets) await untilGone(this, connection.client, target, flags.timeout * 1_000)
  },
})

async function targetsOf(client: Client, namespace: string, flags: Flags, words: readonly string[]): Promise<Target[]> {
  const scope = (kind: KindName, own?: string) => (kinds[kind].namespaced ? { namespace: own ?? namespace } : {})
  if (flags.file) {
    return readManifests(flags.file).map(({ kind, object }) => ({
      kind,
      ref: { name: object.metadata.name ?? '', ...scope(kind, object.metadata.namespace) },
    }))
  }
  const wanted = resourcesFrom(words)
  if (wanted.names.length > 0) return wanted.names.map(({ kind, name }) => ({ kind, ref: { name, ...scope(kind) } }))
  if (!flags.all) throw new UsageError('name the objects, or use --all')
  const lists = await Promise.all(
    wanted.kinds.map(async (kind) => ({ kind, list: await client.list(kind, scope(kind)) })),
  )
  return lists.flatMap(({ kind, list }) =>
    list.items.map(({ metadata }) => ({ kind, ref: { name: metadata.name ?? '', ...scope(kind) } })),
  )
}

/** What a person would want to know before: claims and volumes whose data goes with them. */
async function dataLost(client: Client, targets: readonly Target[]): Promise<string[]> {
  const lines = await Promise.all(
    targets.map(async ({ kind, ref }) => {
      if (kind !== 'PersistentVolumeClaim') return []
      const claim = await client.get(kind, ref)
      const volumeName = claim.spec?.volumeName
      if (!volumeName) return []
      const volume = await client.get('PersistentVolume', { name: volumeName }).catch(() => undefined)
      const policy = volume?.spec?.persistentVolumeReclaimPolicy
      return policy === 'Delete'
        ? [`claim ${ref.name}: its volume ${volumeName} has the reclaim policy Delete, so its data will be deleted`]
        : []
    }),
  )
  return lines.flat()
}

async function untilGone(context: Context, client: Client, target: Target, timeoutMs: number): Promise<void> {
  const { kind, ref } = target
  const start = performance.now()
  using interrupts = catchInterrupts()
  let told = ''
  for (;;) {
    const object = await getIfExists(client, kind, ref)
    if (!object) return
    if (interrupts.signal.aborted) throw interrupts.error(stillDeleted(target), askAbout(kind, ref))
    const waited = performance.now() - start
    const isOver = waited > timeoutMs
    if (waited > 1_000 || isOver) {
      const reason = holderOf(kind, object, await surroundingsOf(client, kind, object), Date.now())
      const line = `waiting for ${kinds[kind].singular}/${ref.name}: ${reason}`
      if (line !== told && !isOver) context.note(line)
      told = line
      if (isOver) {
        context.note(`hawser: ${kinds[kind].singular}/${ref.name} is still there: ${reason}`)
        context.note(`  try: ${askAbout(kind, ref)}`)
        return context.fail(exitCodes.waiting)
      }
    }
    await sleep(waited > 1_000 ? 500 : 100, undefined, { signal: interrupts.signal }).catch(() => {})
  }
}

/** What else must be known to say who holds an object. */
interface Surroundings {
  /** The pod's node; undefined: there is none of that name. */
  readonly node?: Node | undefined
  readonly pods?: readonly Pod[]
}

async function surroundingsOf(client: Client, kind: KindName, object: KubeObject): Promise<Surroundings> {
  if (kind === 'Pod') {
    const name = (object as Pod).spec?.nodeName
    return name === undefined ? {} : { node: await client.get('Node', { name }).catch(() => undefined) }
  }
  if (kind !== 'PersistentVolumeClaim') return {}
  return { pods: (await client.list('Pod', { namespace: object.metadata.namespace ?? '' })).items }
}

/** Who or what keeps an object that is being deleted? Pure. */
export function holderOf(kind: KindName, object: KubeObject, around: Surroundings, now: number): string {
  const { finalizers = [], name = '', deletionTimestamp } = object.metadata
  if (kind === 'Namespace') return 'the objects in it are being deleted'
  const users = (around.pods ?? [])
    .filter((pod) => claimsOf(pod).some(({ claimName }) => claimName === name))
    .map(({ metadata }) => metadata.name)
  if (users.length > 0) return `used by pod ${users.join(', ')}`
  if (finalizers.length > 0) return `held by ${finalizers.join(', ')}`
  const nodeName = kind === 'Pod' ? (object as Pod).spec?.nodeName : undefined
  if (nodeName === undefined) return 'it is being deleted'
  if (!around.node) return `its node ${nodeName} does not exist, so nothing confirms that the pod has ended`
  const ready = around.node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
  if (!ready) return `its node ${nodeName} is not ready, so nothing confirms that the pod has ended`
  const leftMs = Date.parse(deletionTimestamp ?? '') - now
  return leftMs > 0
    ? `node ${nodeName} stops it; its grace period ends in ${duration(leftMs)}`
    : `node ${nodeName} stops it and unmounts its volumes`
}
