// Why is the first burst as quick as the tenth? Because the program has practised: before it says that it is ready, a
// private cluster in memory has lived through some claims, so that the code which serves them is compiled by then.
import type { ApiServer } from '../apiserver/start.ts'
import { createApiServer } from '../apiserver/start.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../api/types.ts'
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
  readonly claims: number
  /** The rest of the program goes first. */
  readonly nextTurn: () => Promise<void>
}

/** So many requests under way at a time, as in a real burst. */
const together = 8
const longestMs = 3_000

/** How many claims got their volumes: all of them, or fewer after a while, for practising must never be in the way. */
export async function rehearse({ clock, host, claims, nextTurn }: RehearsalDeps): Promise<number> {
  await using stack = new AsyncDisposableStack()
  const random = createRandom(1)
  const log = silentLog
  const metrics = createMetrics()
  const store = stack.use(createMemoryStore())
  const server = await createApiServer({
    store,
    clock,
    random,
    log,
    metrics,
    tokens: [],
    signingKey: new Uint8Array(32),
  })
  stack.defer(() => server.close())
  const client = createInProcessClient(server.api())
  const options = { forceDetachOnTimeout: false, placement: true }
  stack.use(await startControllers({ client, clock, random, log, metrics, host, ...options }))
  using deadline = clock.deadline(longestMs, new AbortController().signal)
  const bound = boundClaims(server, claims, deadline.signal)
  for (let index = 0; index < claims && !deadline.signal.aborted; index += together) {
    await Promise.all(Array.from({ length: together }, (_, at) => oneLife(server, index + at, deadline.signal)))
    await nextTurn()
  }
  return bound
}

/** What a client asks for around one claim, in the form in which it arrives over HTTP. */
async function oneLife(server: ApiServer, index: number, signal: AbortSignal): Promise<void> {
  const volumes = '/api/v1/persistentvolumes'
  const request = async (method: string, path: string, body?: object, type = 'application/json'): Promise<void> => {
    await server.handle({
      method,
      path,
      query: new URLSearchParams(),
      headers: { accept: 'application/json', 'content-type': type, 'user-agent': 'rehearsal' },
      body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
      user: { name: 'rehearsal', groups: ['system:masters', 'system:authenticated'] },
      signal,
    })
  }
  await request('POST', volumes, volume(index))
  await request('GET', `${volumes}/v${index}`)
  const labels = { metadata: { labels: { part: `p${index}` } } }
  await request('PATCH', `${volumes}/v${index}`, labels, 'application/merge-patch+json')
  await request('POST', '/api/v1/namespaces/default/persistentvolumeclaims', claim(index))
}

async function boundClaims(server: ApiServer, wanted: number, signal: AbortSignal): Promise<number> {
  const bound = new Set<string>()
  try {
    for await (const event of server.api().watch('PersistentVolumeClaim', { resourceVersion: '0' }, signal)) {
      if (event.type === 'modified' && event.object.status?.phase === 'Bound') bound.add(event.object.metadata.name)
      if (bound.size >= wanted) break
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return bound.size
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
