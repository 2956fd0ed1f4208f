// Does the client speak HTTP as a Kubernetes server expects it: paths, bodies, errors, watches in pieces, aborts?
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { isConflict, isNotFound, isTooOld } from '../api/status-error.ts'
import { claim, pod } from '../../test/kit/objects.ts'
import { createHttpClient, createHttpTransport } from './http.ts'
import type { HttpClient, HttpConfig } from './http.ts'

interface Heard {
  readonly line: string
  readonly type: string | undefined
  readonly token: string | undefined
  readonly body: unknown
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function withServer(
  answer: Answer,
  run: (client: HttpClient, heard: Heard[]) => Promise<void>,
  more: Partial<HttpConfig> = {},
): Promise<void> {
  const heard: Heard[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (piece: Buffer) => (text += piece.toString()))
    request.on('end', () => {
      const { 'content-type': type, authorization: token } = request.headers
      heard.push({
        line: `${request.method} ${request.url}`,
        type,
        token,
        body: text === '' ? undefined : JSON.parse(text),
      })
      answer(request, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  using client = createHttpClient({ url: `http://127.0.0.1:${port}/base/`, token: 'secret', ...more })
  try {
    await run(client, heard)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

const echo: Answer = (_request, response) => response.end(JSON.stringify({ kind: 'X', metadata: { name: 'x' } }))

test('objects come without the record of who owns their fields, as in the same process', async () => {
  const object = { kind: 'ConfigMap', metadata: { name: 'x', managedFields: [{ manager: 'm' }], uid: 'u' }, data: {} }
  const answer: Answer = ({ url = '' }, response) => {
    const list = { metadata: { resourceVersion: '1' }, items: [object] }
    response.end(JSON.stringify(url.includes('watch') ? { type: 'ADDED', object } : url.endsWith('/x') ? object : list))
  }
  await withServer(answer, async (client) => {
    const { signal } = new AbortController()
    const seen = [await client.get('ConfigMap', { namespace: 'ns', name: 'x' })]
    seen.push(...(await client.list('ConfigMap')).items)
    for await (const event of client.watch('ConfigMap', {}, signal)) if (event.type === 'added') seen.push(event.object)
    assert.deepEqual(
      seen.map(({ metadata }) => metadata),
      Array.from({ length: 3 }, () => ({ name: 'x', uid: 'u' })),
    )
  })
})

test('each verb becomes its request', async () => {
  await withServer(echo, async (client, heard) => {
    const ref = { namespace: 'ns', name: 'c' }
    await client.get('PersistentVolumeClaim', ref)
    await client.list('StorageClass', { labelSelector: 'a=b', limit: 5, resourceVersionMatch: 'Exact' })
    await client.create('PersistentVolumeClaim', claim(), { fieldManager: 'me' })
    await client.update('PersistentVolumeClaim', claim(), { subresource: 'status' })
    await client.patch('PersistentVolume', { name: 'v' }, { type: 'merge', body: { a: 1 } })
    await client.remove('Pod', ref, { uid: 'u', gracePeriodSeconds: 0, propagation: 'Background', dryRun: true })
    await client.post('Pod', ref, 'binding', { target: { name: 'n' } })
    assert.deepEqual(
      heard.map(({ line }) => line),
      [
        'GET /base/api/v1/namespaces/ns/persistentvolumeclaims/c',
        'GET /base/apis/storage.k8s.io/v1/storageclasses?labelSelector=a%3Db&limit=5&resourceVersionMatch=Exact',
        'POST /base/api/v1/namespaces/ns/persistentvolumeclaims?fieldManager=me',
        'PUT /base/api/v1/namespaces/ns/persistentvolumeclaims/c/status',
        'PATCH /base/api/v1/persistentvolumes/v',
        'DELETE /base/api/v1/namespaces/ns/pods/c',
        'POST /base/api/v1/namespaces/ns/pods/c/binding',
      ],
    )
    assert.deepEqual(heard[4]?.type, 'application/merge-patch+json')
    assert.deepEqual(heard[5]?.body, {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid: 'u' },
      gracePeriodSeconds: 0,
      dryRun: ['All'],
      propagationPolicy: 'Background',
    })
    assert.ok(heard.every(({ token }) => token === 'Bearer secret'))
  })
})

test('a list gives its items their kind, its version and its continuation', async () => {
  const list = { metadata: { resourceVersion: '7', continue: 'more' }, items: [{ metadata: { name: 'p' } }] }
  await withServer(
    (_request, response) => response.end(JSON.stringify(list)),
    async (client) => {
      const answer = await client.list('Pod', {})
      assert.deepEqual(answer, {
        items: [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } }],
        resourceVersion: '7',
        continue: 'more',
      })
    },
  )
})

test('a Status becomes a StatusError; anything else too, with its number', async () => {
  const refuse =
    (code: number, body: string): Answer =>
    (_request, response) =>
      response.writeHead(code).end(body)
  const status = (code: number, reason: string) => JSON.stringify({ kind: 'Status', code, reason, message: 'no' })
  const thrown = async (answer: Answer) => {
    let caught: unknown
    await withServer(answer, (client) =>
      client.get('Pod', { name: 'x' }).then(
        () => {},
        (error: unknown) => void (caught = error),
      ),
    )
    return caught
  }
  assert.ok(isNotFound(await thrown(refuse(404, status(404, 'NotFound')))))
  assert.ok(isConflict(await thrown(refuse(409, status(409, 'Conflict')))))
  assert.match(String(await thrown(refuse(502, 'bad gateway'))), /502: bad gateway/)
})

test('removed for good, or held by finalizers', async () => {
  const held = {
    kind: 'Pod',
    ...pod('p', { deleting: true }),
    metadata: { ...pod('p', { deleting: true }).metadata, finalizers: ['x'] },
  }
  const answers = [{ kind: 'Status', status: 'Success' }, pod('p', { deleting: true }), held]
  await withServer(
    (_request, response) => response.end(JSON.stringify(answers.shift())),
    async (client) => {
      const results = []
      for (let round = 0; round < 3; round++)
        results.push((await client.remove('Pod', { namespace: 'ns', name: 'p' }))?.metadata.name)
      assert.deepEqual(results, [undefined, undefined, 'p'])
    },
  )
})

test('a watch yields lines however they are cut, bookmarks, and an ERROR as an exception', async () => {
  const lines =
    JSON.stringify({ type: 'ADDED', object: pod('ä') }) +
    '\n' +
    JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } }) +
    '\n' +
    JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } }) +
    '\n'
  const answer: Answer = (_request, response) => {
    const bytes = Buffer.from(lines)
    for (let at = 0; at < bytes.length; at += 7) response.write(bytes.subarray(at, at + 7))
    response.end()
  }
  await withServer(answer, async (client, heard) => {
    const seen: string[] = []
    const watch = async () => {
      for await (const event of client.watch(
        'Pod',
        { resourceVersion: '3', allowBookmarks: true },
        new AbortController().signal,
      ))
        seen.push(
          event.type === 'bookmark'
            ? `bookmark ${event.resourceVersion}`
            : `${event.type} ${event.object.metadata.name}`,
        )
    }
    await assert.rejects(watch(), (error) => isTooOld(error))
    assert.deepEqual(seen, ['added ä', 'bookmark 9'])
    assert.equal(heard[0]?.line, 'GET /base/api/v1/pods?watch=true&resourceVersion=3&allowWatchBookmarks=true')
  })
})

test('an aborted watch ends quietly; an aborted request fails with the reason', async () => {
  await withServer(
    (_request, response) => void response.write('{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'),
    async (client) => {
      const stop = new AbortController()
      const seen: string[] = []
      for await (const event of client.watch('Pod', {}, stop.signal)) {
        seen.push(event.type)
        stop.abort(new Error('enough'))
      }
      assert.deepEqual(seen, ['added'])
      const late = new AbortController()
      const asked = client.get('Pod', { name: 'x' }, late.signal)
      late.abort(new Error('never mind'))
      await assert.rejects(asked, /never mind/)
    },
  )
})

test('an answer that breaks off fails, and so does one that never comes', async () => {
  const breaksOff: Answer = (_request, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"kind":', () => response.destroy())
  }
  const ref = { namespace: 'ns', name: 'c' }
  await withServer(breaksOff, async (client) => {
    await assert.rejects(client.get('Pod', ref), { code: 'ECONNRESET' })
  })
  const silent: Answer = () => {}
  const late = /^Error: no answer to GET .*\/pods\/c within 50 ms$/
  await withServer(silent, (client) => assert.rejects(client.get('Pod', ref), late), { timeoutMs: 50 })
})

test('the time of the server is told, however wrong our own clock is', async () => {
  const server = createServer((_request, response) => {
    response.setHeader('date', 'Thu, 01 Jan 2026 00:00:00 GMT').end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  using transport = createHttpTransport({ url: `http://127.0.0.1:${port}` })
  assert.equal(await transport.time(new AbortController().signal), Date.parse('2026-01-01T00:00:00Z'))
  server.closeAllConnections()
  server.close()
})
