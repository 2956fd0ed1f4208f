// Can a pod be given containers to look at it, and nothing else be changed that way? As `kubectl debug` asks, and as the
// server of Kubernetes answers.
import assert from 'node:assert/strict'
import test from 'node:test'
import { makeServer, paths, pod } from '../kit/api-server.ts'
import type { TestServer } from '../kit/api-server.ts'

const at = `${paths.pods}/p/ephemeralcontainers`
const debug = (name: string, more: object = {}) => ({ name, image: 'busybox', command: ['sh'], ...more })
const add = (server: TestServer, ...containers: object[]) =>
  server.patch(at, 'strategic', { spec: { ephemeralContainers: containers } })

test('a container is added by a strategic patch; names, labels and status stay as they are', async () => {
  await using server = await makeServer()
  const made = await server.post(paths.pods, pod('p'))
  await add(server, debug('first', { targetContainerName: 'c' }))
  const body = { metadata: { labels: { a: 'b' } }, spec: { nodeName: 'n', ephemeralContainers: [debug('second')] } }
  const { code, body: answer } = await server.patch(at, 'strategic', { ...body, status: { phase: 'Failed' } })
  assert.equal(code, 200)
  assert.deepEqual(answer.spec.ephemeralContainers.map((each: { name: string }) => each.name).toSorted(), [
    'first',
    'second',
  ])
  assert.equal(answer.spec.ephemeralContainers[0].terminationMessagePath, '/dev/termination-log')
  assert.deepEqual(
    [answer.metadata.labels, answer.spec.nodeName, answer.status],
    [undefined, undefined, made.body.status],
  )
  assert.equal(answer.metadata.generation, 3)
  assert.deepEqual((await server.get(at)).body, (await server.get(`${paths.pods}/p`)).body)
  const { resources } = (await server.get('/api/v1')).body
  const listed = resources.find(({ name }: { name: string }) => name === 'pods/ephemeralcontainers')
  assert.deepEqual([listed.kind, listed.verbs], ['Pod', ['get', 'patch', 'update']])
})

test('none is changed or removed, there or through the pod itself; none is there from the beginning', async () => {
  await using server = await makeServer()
  await server.post(paths.pods, pod('p'))
  await add(server, debug('d'))
  const { body: held } = await server.get(at)
  const removed = await server.put(at, { ...held, spec: { ...held.spec, ephemeralContainers: [] } })
  assert.equal(removed.code, 422)
  assert.match(
    removed.body.message,
    /spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed/,
  )
  const changed = await add(server, debug('d', { image: 'other' }))
  assert.match(changed.body.message, /existing ephemeral containers "d" may not be changed/)
  const main = await server.patch(`${paths.pods}/p`, 'strategic', { spec: { ephemeralContainers: [debug('e')] } })
  assert.equal(main.code, 422)
  assert.match(main.body.message, /spec: Forbidden: pod updates may not change fields other than/)
  const early = await server.post(paths.pods, pod('q', { ephemeralContainers: [debug('d')] }))
  assert.match(early.body.message, /spec.ephemeralContainers: Forbidden: cannot be set on create/)
})

const refused: readonly [string, object, RegExp][] = [
  [
    'a port',
    { ports: [{ containerPort: 80 }] },
    /ephemeralContainers\[0\].ports: Forbidden: cannot be set for an Ephemeral/,
  ],
  ['resources', { resources: { limits: { cpu: '1' } } }, /\[0\].resources: Forbidden/],
  ['a probe', { livenessProbe: { exec: { command: ['true'] } } }, /\[0\].livenessProbe: Forbidden/],
  ['a hook', { lifecycle: { preStop: { exec: { command: ['true'] } } } }, /\[0\].lifecycle: Forbidden/],
  [
    'a part of a volume',
    { volumeMounts: [{ name: 'v', mountPath: '/v', subPath: 'x' }] },
    /volumeMounts\[0\].subPath: Forbidden/,
  ],
  [
    'a volume that is not there',
    { volumeMounts: [{ name: 'w', mountPath: '/w' }] },
    /volumeMounts\[0\].name: Not found: "w"/,
  ],
  ['a target that is not there', { targetContainerName: 'x' }, /targetContainerName: Not found: "x"/],
  ['the name of another container', { name: 'c' }, /\[0\].name: Duplicate value: "c"/],
]
for (const [name, more, message] of refused) {
  test(`what serves only to look has no use for ${name}`, async () => {
    await using server = await makeServer()
    await server.post(paths.pods, pod('p', { volumes: [{ name: 'v', emptyDir: {} }] }))
    const answer = await add(server, debug('d', more))
    assert.equal(answer.code, 422)
    assert.match(answer.body.message, message)
  })
}
