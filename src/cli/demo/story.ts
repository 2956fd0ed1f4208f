// The story of the demo, act by act, told through the API alone: claim, write, move, grow, snapshot, restore, delete.
import type { Pod } from '../../api/generated/types.ts'
import type { Connection } from '../connect.ts'
import type { Context } from '../context.ts'
import { ignoreNotFound } from '../../api/status-error.ts'
import { duration, paint } from '../output.ts'
import { waitUntil } from '../wait.ts'
import { printLogs } from '../commands/logs.ts'
import { exitOf, podOf } from '../commands/run.ts'
import { sized } from '../commands/volume/resize.ts'
import { readyToUse } from '../commands/volume/snapshot.ts'
import { claimOf } from '../commands/volume/options.ts'
import type { Milestone } from './milestones.ts'
import { watchMilestones } from './milestones.ts'

export interface StoryDeps {
  readonly context: Context
  readonly connection: Connection
  readonly directory: string
  readonly nodes: readonly [string, string]
  /** May ext4 grow while it is mounted (CAP_SYS_RESOURCE)? */
  readonly growsOnline: boolean
  readonly signal: AbortSignal
}

const timeoutMs = 60_000
const file = '/data/poem'
const write = `dd if=/dev/urandom of=${file} bs=1M count=8 2>/dev/null && sync && sha256sum ${file}`
const read = `sha256sum ${file}`

/** Throws when the data that was read back is not the data that was written. */
export async function tellStory(deps: StoryDeps): Promise<void> {
  const { context, connection, nodes } = deps
  const { client, namespace } = connection
  const [first, second] = nodes

  act(context, 1, `a claim on the built-in driver, and a pod on node ${first} that writes 8 MiB`)
  await client.create(
    'PersistentVolumeClaim',
    claimOf({ name: 'data', size: '64Mi', mode: 'ReadWriteOnce', block: false }, namespace),
  )
  const written = await runPod(deps, { pod: 'writer', claim: 'data', node: first, script: write })
  const checksum = checksumOf(written)
  context.print(`  sha256 of what was written: ${checksum}`)

  act(context, 2, `the pod is deleted and made again on node ${second}: the volume follows`)
  await removePod(deps, 'writer')
  compare(context, checksum, await runPod(deps, { pod: 'reader', claim: 'data', node: second, script: read }))
  await removePod(deps, 'reader')

  act(context, 3, 'the volume grows from 64Mi to 128Mi')
  await grow(deps, second)

  act(context, 4, 'a snapshot, and a new volume made from it')
  await snapshotAndRestore(deps)
  compare(context, checksum, await runPod(deps, { pod: 'historian', claim: 'restored', node: first, script: read }))
  await removePod(deps, 'historian')

  act(context, 5, 'everything is deleted')
  await removeAll(deps)
}

interface PodRun {
  readonly pod: string
  readonly claim: string
  readonly node: string
  readonly script: string
}

/** Runs a pod to its end, shows its milestones and answers its output. */
async function runPod(deps: StoryDeps, { pod, claim, node, script }: PodRun): Promise<string> {
  const { context, connection, directory, signal } = deps
  const { client, namespace } = connection
  const watching = await watchMilestones(client, { namespace, claim, pod, node, directory })
  const mounts = [{ claim, path: '/data', readOnly: false }]
  const command = ['sh', '-c', script]
  await client.create('Pod', podOf({ name: pod, command, claim: mounts, node }, namespace))
  const code = await waitUntil(
    context,
    client,
    { kind: 'Pod', ref: { name: pod, namespace }, timeoutMs, signal },
    exitOf,
  )
  showMilestones(context, watching.finish())
  const output = await outputOf(connection, pod, signal)
  if (code !== 0) throw new Error(`pod ${pod} ended with exit code ${code}: ${output.trim()}`)
  return output
}

async function outputOf(connection: Connection, pod: string, signal: AbortSignal): Promise<string> {
  const pieces: Uint8Array[] = []
  const collector = { write: (bytes: Uint8Array) => void pieces.push(bytes) } as Context
  await printLogs(collector, connection, { name: pod, follow: false }, signal)
  return Buffer.concat(pieces).toString()
}

async function grow(deps: StoryDeps, node: string): Promise<void> {
  const { context, connection, growsOnline, signal } = deps
  const { client, namespace } = connection
  const ref = { name: 'data', namespace }
  const resize = () =>
    client.patch('PersistentVolumeClaim', ref, {
      type: 'merge',
      body: { spec: { resources: { requests: { storage: '128Mi' } } } },
    })
  const wait = { kind: 'PersistentVolumeClaim', ref, timeoutMs, signal } as const
  const size = `df -B1 --output=size /data | tail -1`
  const start = performance.now()
  if (growsOnline) {
    await startPod(deps, 'writer', node)
    await resize()
    await waitUntil(context, client, wait, (claim) => sized(claim, '128Mi', true))
    phase(context, 'grow', performance.now() - start, 'volume and filesystem, while a pod had it mounted')
    await removePod(deps, 'writer')
  } else {
    await resize()
    await waitUntil(context, client, wait, (claim) => sized(claim, '128Mi', false))
    phase(
      context,
      'grow',
      performance.now() - start,
      'the volume; this root lacks CAP_SYS_RESOURCE, so ext4 grows when mounted',
    )
  }
  const bytes = Number((await runPod(deps, { pod: 'surveyor', claim: 'data', node, script: size })).trim())
  await waitUntil(context, client, wait, (claim) => sized(claim, '128Mi', true))
  context.print(`  the filesystem has ${Math.round(bytes / 2 ** 20)} MiB now`)
  if (!(bytes > 100 * 2 ** 20)) throw new Error(`the filesystem has only ${bytes} bytes`)
  await removePod(deps, 'surveyor')
}

/** A pod that only holds the volume. */
async function startPod({ context, connection, signal }: StoryDeps, name: string, node: string): Promise<void> {
  const { client, namespace } = connection
  const claim = [{ claim: 'data', path: '/data', readOnly: false }]
  await client.create('Pod', podOf({ name, command: ['sleep', '600'], claim, node }, namespace))
  const running = (pod: Pod | undefined) =>
    pod?.status?.phase === 'Running'
      ? ({ done: true, value: undefined } as const)
      : ({ done: false, waiting: `pod ${name} starts` } as const)
  await waitUntil(context, client, { kind: 'Pod', ref: { name, namespace }, timeoutMs, signal }, running)
}

async function snapshotAndRestore({ context, connection, signal }: StoryDeps): Promise<void> {
  const { client, namespace } = connection
  const start = performance.now()
  await client.create('VolumeSnapshot', {
    metadata: { name: 'monday', namespace },
    spec: { source: { persistentVolumeClaimName: 'data' } },
  })
  const wait = { kind: 'VolumeSnapshot', ref: { name: 'monday', namespace }, timeoutMs, signal } as const
  const size = await waitUntil(context, client, wait, readyToUse)
  phase(context, 'snapshot', performance.now() - start, `monday (${size})`)
  const from = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' }
  const claim = claimOf(
    { name: 'restored', size: size || '128Mi', mode: 'ReadWriteOnce', block: false, from },
    namespace,
  )
  await client.create('PersistentVolumeClaim', claim)
}

async function removePod({ context, connection, signal }: StoryDeps, name: string): Promise<void> {
  const { client, namespace } = connection
  const start = performance.now()
  const ref = { name, namespace }
  await client.remove('Pod', ref, { gracePeriodSeconds: 0 }).catch(ignoreNotFound)
  await waitUntil(context, client, { kind: 'Pod', ref, timeoutMs, signal }, (pod) =>
    pod ? { done: false, waiting: `pod ${name} ends` } : { done: true, value: undefined },
  )
  phase(context, 'unmount', performance.now() - start, `pod ${name} is gone`)
}

async function removeAll(deps: StoryDeps): Promise<void> {
  const { context, connection, signal } = deps
  const { client, namespace } = connection
  const start = performance.now()
  await client.remove('VolumeSnapshot', { name: 'monday', namespace })
  for (const name of ['data', 'restored']) await client.remove('PersistentVolumeClaim', { name, namespace })
  const kinds = ['VolumeSnapshotContent', 'PersistentVolume', 'VolumeAttachment'] as const
  for (const kind of kinds) {
    const { items } = await client.list(kind)
    for (const { metadata } of items) {
      const wait = { kind, ref: { name: metadata.name }, timeoutMs, signal }
      await waitUntil(context, client, wait, (object) =>
        object ? { done: false, waiting: `${kind} ${metadata.name} goes` } : { done: true, value: undefined },
      )
    }
  }
  phase(context, 'delete', performance.now() - start, 'claims, volumes, snapshot and attachments')
}

function checksumOf(output: string): string {
  const found = /^[0-9a-f]{64}/m.exec(output)?.[0]
  if (!found) throw new Error(`the pod printed no checksum: ${output.trim()}`)
  return found
}

function compare(context: Context, expected: string, output: string): void {
  const found = checksumOf(output)
  if (found !== expected) throw new Error(`the data changed: ${found} instead of ${expected}`)
  context.print(`  sha256 read back:           ${found}  ${paint(context, 'green', 'the same')}`)
}

export function act(context: Context, number: number, title: string): void {
  context.print('')
  context.print(paint(context, 'bold', `${number}. ${title}`))
}

function showMilestones(context: Context, milestones: readonly Milestone[]): void {
  for (const { phase: name, tookMs, detail } of milestones) phase(context, name, tookMs, detail)
  const last = milestones.at(-1)
  if (last) context.print(`  ${paint(context, 'dim', `${'total'.padEnd(10)} ${duration(last.atMs).padStart(7)}`)}`)
}

export function phase(context: Context, name: string, ms: number, detail: string): void {
  context.print(`  ${paint(context, 'cyan', name.padEnd(10))} ${duration(ms).padStart(7)}   ${detail}`)
}
