// Does a pod see the files of an image volume, and only read them? A real `hawser up`. Needs root.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createHttpClient } from '../../src/client/http.ts'
import { untilWhy } from '../kit/assert-why.ts'
import { startServer } from '../kit/server-process.ts'
import { podOn, until } from '../kit/agent-fixture.ts'
import { needsRoot as skip } from '../kit/machine.ts'

const script = 'cat /model/weights; if echo x 2>/dev/null >/model/weights; then echo written; fi'

test('an image volume shows the directory named for its reference, read-only (IMG-1)', { skip }, async () => {
  const unpacked = mkdtempSync(join(tmpdir(), 'hawser-image-'))
  writeFileSync(join(unpacked, 'weights'), 'seven\n')
  await using server = await startServer(['--store', 'memory', '--image-root', `models/small:1=${unpacked}`])
  using client = createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true })
  const ask = async (name: string, reference: string) => {
    const pod = podOn(name, {
      containers: [
        { name: 'c', image: 'i', command: ['sh', '-c', script], volumeMounts: [{ name: 'm', mountPath: '/model' }] },
      ],
      volumes: [{ name: 'm', image: { reference } }],
    })
    await client.create('Pod', { ...pod, spec: { ...pod.spec, nodeName: hostname().toLowerCase() } })
  }
  const phaseOf = async (name: string) => (await client.get('Pod', { namespace: 'default', name })).status?.phase
  await ask('reader', 'models/small:1')
  await until('it has ended', async () => (await phaseOf('reader')) === 'Succeeded')
  const log = await fetchLog(server.url, server.token, 'reader')
  assert.equal(log, 'seven\n')
  assert.equal(readFileSync(join(unpacked, 'weights'), 'utf8'), 'seven\n')

  await ask('stranger', 'models/large:1')
  const told = await until('it is told', async () => {
    const { items } = await client.list('Event', { namespace: 'default' })
    return items.find((event) => event.involvedObject.name === 'stranger' && event.reason === 'FailedMount')
  })
  assert.match(told.message ?? '', /image "models\/large:1" is not unpacked on this node/)
  const { blocked } = await untilWhy(client, 'pod/stranger', 'imageMissing')
  assert.match(blocked?.sentence ?? '', /does not have the image .*models\/large:1/)
  for (const name of ['reader', 'stranger']) await client.remove('Pod', { namespace: 'default', name })
  await until('they are gone', async () => (await client.list('Pod', {})).items.length === 0)
  rmSync(unpacked, { recursive: true })
})

async function fetchLog(url: string, token: string, name: string): Promise<string> {
  const { request, Agent } = await import('node:https')
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const agent = new Agent({ rejectUnauthorized: false })
  const path = `${url}/api/v1/namespaces/default/pods/${name}/log`
  request(path, { agent, headers: { authorization: `Bearer ${token}` } }, (answer) => {
    let text = ''
    answer.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    answer.on('end', () => resolve(text)).on('error', reject)
  }).end()
  return promise
}
