// How does the API server learn where a node's own server is? From the Node object, and no longer than that server lives.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNodeWorld, nodeName } from '../kit/node.ts'

test('a Node tells the address and the certificate of its server, and forgets them with it', async () => {
  let nodeServer: { host: string; port: number; fingerprint: string } | undefined
  nodeServer = { host: '127.0.0.1', port: 10250, fingerprint: 'AB:CD' }
  const world = await createNodeWorld({ nodeServer: () => nodeServer })
  const look = async () => {
    const { metadata, status } = await world.client.get('Node', { name: nodeName })
    const { 'hawser.dev/node-server': address, 'hawser.dev/node-server-certificate': certificate } =
      metadata.annotations ?? {}
    return [address, certificate, status?.daemonEndpoints?.kubeletEndpoint?.Port]
  }
  const first = await world.start()
  await world.clock.advance(1_000)
  assert.deepEqual(await look(), ['127.0.0.1:10250', 'AB:CD', 10250])
  await first.agent.stop()
  nodeServer = { host: '::1', port: 4000, fingerprint: 'EF' }
  const second = await world.start()
  await world.clock.advance(1_000)
  assert.deepEqual(await look(), ['[::1]:4000', 'EF', 4000])
  await second.agent.stop()
  nodeServer = undefined
  const third = await world.start()
  await world.clock.advance(1_000)
  assert.deepEqual((await look()).slice(0, 2), [undefined, undefined])
  await third.agent.stop()
})
