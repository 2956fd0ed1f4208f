// What does a node do for clients that leave? A command hears no end that nobody said, a container that is spoken to once has
// heard all, and whoever types to a deaf container is missed when it goes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podUid } from '../../api/names.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createByteQueue, createStreamPair } from '../../streams/byte-stream.ts'
import type { NodeRequest } from '../../streams/node-server.ts'
import { openWebSocket } from '../../streams/websocket.ts'
import type { PodView } from '../pods/pods.ts'
import type { NodeServerDeps } from './handle.ts'
import { createNodeServer } from './handle.ts'

const uid = podUid('11111111-2222-3333-4444-555555555555')
const webSocket = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'x',
  'sec-websocket-protocol': 'v5.channel.k8s.io',
}

/** A pod with one container that runs, and a client that has opened a stream into it. */
async function enter(
  path: string,
  container: object,
  runtime: Partial<NodeServerDeps['runtime']>,
  headers: NodeRequest['headers'] = webSocket,
) {
  const clock = createVirtualClock()
  const view = {
    uid,
    pod: { metadata: { name: 'p', namespace: 'default', uid }, spec: { containers: [{ name: 'c', ...container }] } },
    containers: new Map([['c', { record: {} }]]),
  } as unknown as PodView // as much of one as is asked for
  const nodeServer = createNodeServer({
    clock,
    runtime,
    pods: () => [view],
    settings: async () => ({ env: {}, workingDirectory: '/', groups: [] }),
    // Says nothing, until nobody listens.
    async logs(_wish: unknown, signal: AbortSignal) {
      const lines = createByteQueue()
      signal.addEventListener('abort', () => lines.end())
      return lines
    },
  } as unknown as NodeServerDeps) // no more of them is used here
  const { signal } = new AbortController()
  const answer = await nodeServer({ method: 'GET', path, headers, signal })
  assert.equal(answer.status, 101)
  const [ours, theirs] = createStreamPair()
  const client = openWebSocket(ours, { clock, mask: () => Uint8Array.of(1, 2, 3, 4) })
  return { clock, client, ours, served: answer.upgrade!(theirs) }
}

test('a command whose client is lost hears no end of its input', async () => {
  let end = 'none'
  const heard = Promise.withResolvers<void>()
  const { clock, client, ours, served } = await enter(
    '/exec/default/p/c?command=cat&input=1&output=1',
    {},
    {
      async runInteractive(_request, { stdin }, signal) {
        const read = async () => {
          for await (const bytes of stdin ?? []) heard.resolve(void bytes)
          end = 'heard'
        }
        void read().catch(() => (end = 'failed'))
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
        return 0
      },
    },
  )
  await client.send(Uint8Array.of(0), Buffer.from('half'))
  await heard.promise
  ours.destroy()
  await served
  await clock.settle()
  assert.equal(end, 'none')
})

test('a container that is spoken to once hears the end, also of a client that was lost', async () => {
  const spoken: string[] = []
  const { client, ours, clock, served } = await enter(
    '/attach/default/p/c?input=1&output=1',
    { stdin: true, stdinOnce: true },
    {
      async writeStdin({ once }, input, signal) {
        let text = ''
        try {
          for await (const bytes of input) text += Buffer.from(bytes).toString()
        } finally {
          // The end can be told only while the signal lasts.
          spoken.push(`${text}${once && !signal.aborted ? ', end' : ''}`)
        }
      },
    },
  )
  await client.send(Uint8Array.of(0), Buffer.from('half'))
  await clock.settle()
  ours.destroy()
  await served
  await clock.settle()
  assert.deepEqual(spoken, ['half', ', end'])
})

test('whoever types to a container that reads nothing is missed when it goes', async () => {
  const { clock, client, served } = await enter('/attach/default/p/c?input=1&output=1', {}, {})
  for (let count = 0; count < 50; count++) void client.send(Uint8Array.of(0), Buffer.alloc(10_000)).catch(() => {})
  void client.close()
  const read = async () => {
    for await (const part of client.parts) void part
  }
  let over = false
  void served.then(() => (over = true))
  await read()
  // At once: no ping was needed to notice.
  await clock.settle()
  assert.equal(over, true)
})

test('a client that goes before its streams are open is no failure', async () => {
  const spdy = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' }
  const { ours, served } = await enter('/exec/default/p/c?command=cat&output=1', {}, {}, spdy)
  ours.destroy()
  await served
})
