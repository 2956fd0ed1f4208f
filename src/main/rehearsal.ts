// Why is the first burst as quick as the tenth? Because the program has practised: before it says that it is ready, private
// clusters in memory have lived through some claims and pods, asked for over a real connection, so that the code which
// serves them is compiled by then.
import { randomBytes } from 'node:crypto'
import type { PersistentVolume, PersistentVolumeClaim } from '../api/types.ts'
import { startApiServer } from '../apiserver/listen.ts'
import type { ServerTls } from '../apiserver/server.ts'
import type { Client } from '../client/client.ts'
import { createHttpClient } from '../client/http.ts'
import { createInProcessClient } from '../client/in-process.ts'
import type { Clock } from '../clock/clock.ts'
import { createRandom } from '../clock/random.ts'
import type { Host } from '../host/host.ts'
import { createMemoryStore } from '../store/memory-store.ts'
import { silentLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { startControllers } from './controllers.ts'

export interface RehearsalDeps {
  readonly clock: Clock
  /** Handed to the controllers; nothing in a rehearsal touches it. */
  readonly host: Pick<Host, 'files'>
  /** As on the real server; without it plain HTTP. */
  readonly tls?: ServerTls
  readonly claims: number
  /** None where there is no node. */
  readonly pods: number
  /** The rest of the program goes first. */
  readonly nextTurn: () => Promise<void>
  readonly longestMs?: number
}

/** So many requests under way at a time, as in a real burst. */
const together = 16
const usuallyLongestMs = 3_000

/** What came of it: everything, or less after a while, for practising must never be in the way. */
export interface Rehearsed {
  /** Claims that got their volumes. */
  readonly claims: number
  /** Pods that came, ran and went. */
  readonly pods: number
}

/** Does so many things, some at a time. */
export type InTurns = (count: number, act: (index: number) => Promise<unknown>) => Promise<void>

export async function rehearse(deps: RehearsalDeps): Promise<Rehearsed> {
  const { clock, nextTurn, longestMs = usuallyLongestMs } = deps
  await using stack = new AsyncDisposableStack()
  using deadline = clock.deadline(longestMs, new AbortController().signal)
  const { signal } = deadline
  // Two stages, by turns: code that has only ever met the functions of one is compiled for those alone, and thrown away
  // when the real server's come along.
  const stages = [stack.use(await startStage(deps)), stack.use(await startStage(deps))]
  const inTurns: InTurns = async (count, act) => {
    for (let index = 0; index < count; index += together) {
      await Promise.all(Array.from({ length: Math.min(together, count - index) }, (_, at) => act(index + at)))
      await nextTurn()
    }
  }
  // Waited for here: the clusters are gone as soon as this function returns.
  const [bound] = await Promise.all([
    Promise.all(stages.map(({ users }) => boundClaims(users, deps.claims / stages.length, signal))),
    unlessAborted(signal, () =>
      inTurns(deps.claims, (index) => oneLife(stages[index % stages.length]!.users, index, signal)),
    ),
  ])
  let pods = 0
  if (deps.pods > 0) {
    const { rehearsePods } = await import('./pod-rehearsal.ts')
    const parts = { stages, clock, random: createRandom(2), pods: deps.pods, inTurns }
    await unlessAborted(signal, async () => void (pods = await rehearsePods(parts, signal)))
  }
  return { claims: bound.reduce((sum, each) => sum + each, 0), pods }
}

/** A private cluster in memory. */
export interface Stage extends AsyncDisposable {
  /** For its parts. */
  readonly inProcess: Client
  /** Theirs who ask it for something. */
  readonly users: Client
}

async function startStage({ clock, host, tls }: RehearsalDeps): Promise<Stage> {
  await using stack = new AsyncDisposableStack()
  const random = createRandom(1)
  const log = silentLog
  const metrics = createMetrics()
  const store = stack.use(createMemoryStore())
  // Nobody else on this machine may take part: the controllers have the host in their hands.
  const token = randomBytes(32).toString('hex')
  const server = await startApiServer({
    store,
    clock,
    random,
    log,
    metrics,
    tokens: [{ token, user: { name: 'rehearsal', groups: ['system:masters', 'system:authenticated'] } }],
    signingKey: randomBytes(32),
    listen: { host: '127.0.0.1', port: 0 },
    tls,
  })
  stack.defer(() => server.close())
  const controllers = { clock, random, log, metrics, host, forceDetachOnTimeout: false, placement: true }
  const inProcess = createInProcessClient(server.api())
  stack.use(await startControllers({ client: inProcess, ...controllers }))
  const authority = tls === undefined ? {} : { ca: tls.authority }
  const users = stack.use(createHttpClient({ url: server.url, token, ...authority }))
  const kept = stack.move()
  return { inProcess, users, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** What a client asks for around one claim. */
async function oneLife(client: Client, index: number, signal: AbortSignal): Promise<void> {
  const ref = { name: `v${index}` }
  await client.create('PersistentVolume', volume(index), {}, signal)
  await client.get('PersistentVolume', ref, signal)
  const body = { metadata: { labels: { part: `p${index}` } } }
  await client.patch('PersistentVolume', ref, { type: 'merge', body }, {}, signal)
  await client.create('PersistentVolumeClaim', claim(index), {}, signal)
}

async function boundClaims(client: Client, wanted: number, signal: AbortSignal): Promise<number> {
  const bound = new Set<string>()
  await unlessAborted(signal, async () => {
    for await (const event of client.watch('PersistentVolumeClaim', { resourceVersion: '0' }, signal)) {
      if (event.type === 'modified' && event.object.status?.phase === 'Bound') bound.add(event.object.metadata.name)
      if (bound.size >= wanted) break
    }
  })
  return bound.size
}

/** Being told to stop is no failure. */
async function unlessAborted(signal: AbortSignal, run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

const claimSpec = { accessModes: ['ReadWriteOnce'], storageClassName: 'rehearsal' } as const

const volume = (index: number): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: `v${index}` },
  spec: {
    ...claimSpec,
    capacity: { storage: '1Gi' },
    persistentVolumeReclaimPolicy: 'Retain',
    csi: { driver: 'rehearsal.hawser.dev', volumeHandle: `h${index}` },
  },
})

const claim = (index: number): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: `c${index}`, namespace: 'default' },
  spec: { ...claimSpec, resources: { requests: { storage: '1Gi' } } },
})
