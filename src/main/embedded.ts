// A cluster inside somebody's program or test: memory store, a free port, a temporary directory; gone with its scope.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '../client/client.ts'
import type { Log } from '../telemetry/log.ts'
import { createLog } from '../telemetry/log.ts'
import { startHawser } from './all-in-one.ts'
import type { KindMap, KindName } from '../api/kinds.ts'
import { kinds } from '../api/kinds.ts'
import type { ObjectRef } from '../api/meta.ts'
import { isTooOld } from '../api/status-error.ts'
import type { ChooseFault } from '../csi/faults.ts'
import { UsageError } from '../installation/config.ts'
import type { Explanation } from '../why/explain.ts'
import { explain } from '../why/explain.ts'
import { isSubjectKind, subjectKinds } from '../why/facts.ts'
import type { WhySubject } from '../why/facts.ts'
import { gatherFacts } from '../why/gather.ts'
import { isJsonObject } from '../api/json.ts'
import { checkedClient, requireOptions, requireRef, shown } from './checked-client.ts'
import { checkedFault, checkOptions } from './embedded-options.ts'

export interface EmbeddedOptions {
  /** Names of nodes that run pods as processes of this machine; needs root. Absent: API and controllers only. */
  readonly nodes?: readonly string[]
  /** Names of nodes on model hosts, with the model driver and its default class `model`; needs no root, mounts nothing. */
  readonly modelNodes?: readonly string[]
  /** What goes wrong with calls to the model driver: asked for each call, with how many of its name came before. */
  readonly driverFault?: ChooseFault
  /** CSI drivers that listen on a socket already. */
  readonly csiDrivers?: readonly { readonly name: string; readonly socket: string }[]
  /** Absent: a temporary directory that goes with the cluster. */
  readonly dataDirectory?: string
  /** `memory` unless told otherwise. */
  readonly store?: 'memory' | 'embedded'
  /** Absent: 127.0.0.1 and a free port. */
  readonly listen?: { readonly host: string; readonly port: number }
  /** Absent: silence. */
  readonly log?: Log
}

export interface EmbeddedHawser extends AsyncDisposable {
  /** In process, as an administrator. */
  readonly client: Client
  /** For kubectl and everybody else, over HTTPS. */
  readonly url: string
  readonly kubeconfig: string
  readonly dataDirectory: string
  /**
   * Resolves with the object as soon as `test` holds for it; undefined stands for an object that is not there. The error of a wait that
   * took too long says what `why` says, and has it as `explanation`.
   */
  waitFor<K extends KindName>(
    kind: K,
    ref: ObjectRef,
    test: (object: KindMap[K] | undefined) => boolean,
    options?: WaitOptions,
  ): Promise<KindMap[K] | undefined>
  /** What `hawser why` says, as data. */
  why(subject: WhySubject): Promise<Explanation>
}

export interface WaitOptions {
  /** 30 seconds unless told otherwise. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedHawser> {
  checkOptions(options)
  const nodes = options.nodes ?? []
  const modelNodes = options.modelNodes ?? []
  if (nodes.length > 0 && process.getuid?.() !== 0)
    throw new UsageError('nodes mount filesystems: this needs root', 'start without nodes: API and controllers only')
  await using stack = new AsyncDisposableStack()
  const temporary = options.dataDirectory === undefined
  const dataDirectory = options.dataDirectory ?? realpathSync(mkdtempSync(join(tmpdir(), 'hawser-')))
  if (temporary) stack.defer(() => removeTemporary(dataDirectory))
  const hawser = stack.use(
    await startHawser(
      {
        dataDirectory,
        listen: options.listen ?? { host: '127.0.0.1', port: 0 },
        store: options.store ?? 'memory',
        bare: nodes.length + modelNodes.length === 0,
        nodes: nodes.map((name) => ({ name, root: join(dataDirectory, 'nodes', name) })),
        csiDrivers: options.csiDrivers ?? [],
        volumePluginDirectory: join(dataDirectory, 'volume-plugins'),
        leaveToSidecars: [],
        runtime: nodes.length === 0 ? 'none' : 'process',
        forceDetachOnTimeout: true,
      },
      {
        log: options.log ?? createLog(() => {}),
        ...(modelNodes.length === 0 ? {} : { modelNodes: { names: modelNodes, ...faultOf(options) } }),
      },
    ),
  )
  const kept = stack.move()
  const client = checkedClient(hawser.client)
  return {
    client,
    url: hawser.url,
    kubeconfig: hawser.kubeconfig,
    dataDirectory,
    async waitFor(kind, ref, test, wait = {}) {
      checkWait(kind, ref, test, wait)
      return await waitFor(client, kind, ref, test, wait)
    },
    async why(subject) {
      checkSubject(subject)
      return await whyNow(client, subject)
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** Pods that still run keep their mounts; then the directory stays too, because deletion never crosses a mount. */
async function removeTemporary(directory: string): Promise<void> {
  const { createLinuxHost } = await import('../host/linux/linux-host.ts')
  await using host = createLinuxHost()
  const mounts = await host.mounts.list(new AbortController().signal)
  if (mounts.some(({ mountPoint }) => mountPoint.startsWith(`${directory}/`))) return
  rmSync(directory, { recursive: true, force: true })
}

const faultOf = ({ driverFault }: EmbeddedOptions) =>
  driverFault === undefined ? {} : { driverFault: checkedFault(driverFault) }

function checkWait(kind: unknown, ref: unknown, test: unknown, options: unknown): void {
  requireRef(kind, ref)
  if (typeof test !== 'function')
    throw new UsageError(`waitFor takes a function that tests the object, not ${shown(test)}`)
  requireOptions('waitFor', options, { timeoutMs: true, signal: true })
  const { timeoutMs } = options as { readonly timeoutMs?: unknown } // checked here
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    throw new UsageError(`timeoutMs must be a number of milliseconds above 0, not ${shown(timeoutMs)}`)
}

function checkSubject(subject: unknown): void {
  if (!isJsonObject(subject)) throw new UsageError(`why takes { kind, name, namespace }, not ${shown(subject)}`)
  requireOptions('why', subject, { kind: true, name: true, namespace: true })
  const { kind } = subject
  if (!isSubjectKind(kind))
    throw new UsageError(`why knows nothing of kind ${shown(kind)}`, `kinds are: ${subjectKinds.join(', ')}`)
  requireRef(kind, subject)
}

async function waitFor<K extends KindName>(
  client: Client,
  kind: K,
  ref: ObjectRef,
  test: (object: KindMap[K] | undefined) => boolean,
  { timeoutMs = 30_000, signal }: WaitOptions,
): Promise<KindMap[K] | undefined> {
  const deadline = AbortSignal.timeout(timeoutMs)
  const stop = signal === undefined ? deadline : AbortSignal.any([deadline, signal])
  const { name, ...scope } = ref
  const options = { ...scope, fieldSelector: `metadata.name=${name}` }
  while (!stop.aborted) {
    try {
      const { items, resourceVersion } = await client.list(kind, options, stop)
      if (test(items[0])) return items[0]
      for await (const event of client.watch(kind, { ...options, resourceVersion }, stop)) {
        if (event.type === 'bookmark') continue
        const object = event.type === 'deleted' ? undefined : event.object
        if (test(object)) return object
      }
    } catch (error) {
      if (!stop.aborted && !isTooOld(error)) throw error
    }
  }
  signal?.throwIfAborted()
  const late = `waitFor ${kinds[kind].singular}/${name}: the condition did not hold within ${timeoutMs} ms`
  if (!isSubjectKind(kind)) throw new Error(late)
  const explanation = await whyNow(client, { kind, ...ref })
  throw Object.assign(new Error(`${late}: ${spoken(explanation)}`), { explanation })
}

function spoken({ verdict, blocked }: Explanation): string {
  if (blocked === undefined) return `why finds nothing wrong (${verdict})`
  const { sentence, error } = blocked
  return error === undefined || sentence.includes(error.message) ? sentence : `${sentence}: ${error.message}`
}

const whyNow = async (client: Client, subject: WhySubject) => explain(await gatherFacts(client, subject, Date.now()))
