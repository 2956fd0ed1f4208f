// `kubectl exec` from end to end on the loopback: a WebSocket to the API server, which asks the node's own server over HTTPS.
import { once } from 'node:events'
import { X509Certificate } from 'node:crypto'
import {
  createAuthority,
  createClientCertificate,
  createServerCertificate,
} from '../../src/apiserver/access/certificates.ts'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import { createNodeClient } from '../../src/apiserver/request/node-client.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createAccess } from '../../src/node/server/access.ts'
import { listenForNode } from '../../src/node/server/listener.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { exitFromStatus } from '../../src/streams/remote-command.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { admin } from '../kit/api-server.ts'
import { modelNode } from '../kit/node-server.ts'

const host = '127.0.0.1'
const token = 'secret-token'

interface Answer {
  readonly output: string
  readonly code: number | undefined
}

export interface PodToLookInto extends AsyncDisposable {
  /** Runs `cat 4` in the container: it echoes its input and exits with 4. */
  exec(input: string): Promise<Answer>
}

/** An API server and a model node, each behind a socket of its own, and a pod that runs there. */
export async function startPodToLookInto(): Promise<PodToLookInto> {
  await using stack = new AsyncDisposableStack()
  const clock = createSystemClock()
  const now = clock.now()
  const authority = await createAuthority()
  const serving = await createServerCertificate(await createAuthority(), { names: [host] }, now)
  const identity = await createClientCertificate(authority, { name: 'admin', groups: ['system:masters'] }, now)
  const model = await modelNode(clock)
  const listener = stack.use(
    await listenForNode(
      {
        nodeServer: model.nodeServer,
        access: createAccess({ clock, node: 'n1', review: async () => ({}) }),
        log: silentLog,
        clock,
        audit: { refusal: () => undefined, write: async () => {} },
        node: 'n1',
      },
      { host, port: 0, ...serving, authority: authority.certificate },
    ),
  )
  const annotations = {
    'hawser.dev/node-server': `${host}:${listener.port}`,
    'hawser.dev/node-server-certificate': new X509Certificate(serving.certificate).fingerprint256,
  }
  const server = await startApiServer({
    store: stack.use(createMemoryStore({})),
    clock,
    random: createRandom(1),
    log: silentLog,
    tokens: [{ token, user: admin }],
    signingKey: new Uint8Array(32).fill(7),
    listen: { host, port: 0 },
    nodeClient: createNodeClient({
      local: new Map(),
      node: async () => ({ metadata: { name: 'n1', annotations } }),
      identity: () => identity,
    }),
  })
  stack.defer(() => server.close())
  const metadata = { name: 'p', namespace: 'default' }
  const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'x' }] }
  await model.put(await server.api().create('Pod', { metadata, spec }))
  const parts = stack.move()
  return { exec: (input) => exec(server.port, input), [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

async function exec(port: number, input: string): Promise<Answer> {
  const path = '/api/v1/namespaces/default/pods/p/exec?command=cat&command=4&stdin=true&stdout=true'
  // Headers are an addition of Node's; browsers have none.
  const options = { protocols: ['v5.channel.k8s.io'], headers: { authorization: `Bearer ${token}` } }
  const socket = new WebSocket(`ws://${host}:${port}${path}`, options as unknown as string[])
  socket.binaryType = 'arraybuffer'
  const received: Record<number, string> = {}
  socket.addEventListener('message', ({ data }) => {
    const bytes = Buffer.from(data as ArrayBuffer)
    received[bytes[0]!] = (received[bytes[0]!] ?? '') + bytes.subarray(1).toString()
  })
  await once(socket, 'open')
  socket.send(Buffer.from(`\0${input}`))
  socket.send(Uint8Array.of(255, 0))
  await once(socket, 'close')
  const { code } = exitFromStatus(received[3] ?? '') as { code?: number }
  return { output: received[1] ?? '', code }
}
