// Does the shell learn names, types and flags? The proposals of `hawser __complete`, against a server, and through bash.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { delimiter, dirname } from 'node:path'
import type { Server } from '../kit/command-line.ts'
import { fileIn, hawser, startServer } from '../kit/command-line.ts'
import { launcher, runProgram } from '../kit/server-process.ts'

let server: Server
before(async () => {
  server = await startServer('--bare', '--store', 'memory')
  const claim = (name: string, namespace: string) =>
    `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"${name}","namespace":"${namespace}"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`
  const text = [claim('data', 'default'), claim('database', 'default'), claim('other', 'kube-system')].join('\n---\n')
  const { code, err } = await server.hawser('apply', '-f', fileIn(server.directory, 'claims.yaml', text))
  assert.equal(code, 0, err)
})
after(() => server[Symbol.asyncDispose]())

const proposed = async (...words: string[]) =>
  (await server.hawser('__complete', '--', ...words)).out.trim().split('\n')

test('names, types, namespaces and flags are proposed', async () => {
  assert.deepEqual(await proposed('why', 'pvc/da'), ['pvc/data', 'pvc/database'])
  assert.deepEqual(await proposed('volume', 'inspect', 'datab'), ['database'])
  assert.deepEqual(await proposed('volume', 'rm', '-n', 'kube-system', 'o'), ['other'])
  assert.deepEqual(await proposed('get', 'pods', '-n', 'kube-s'), ['kube-system'])
  assert.ok((await proposed('get', 'persistentvolumec')).includes('persistentvolumeclaims'))
  assert.ok((await proposed('volume', 'create', '--si')).includes('--size'))
})

test('without a server nothing is proposed, and nothing fails', async () => {
  const { code, out, err } = await hawser(['__complete', 'why', 'pvc/'])
  assert.deepEqual([code, out.trim(), err], [0, '', ''])
})

test('bash completes with the script', async () => {
  const script = [
    'source <(hawser completion bash)',
    'COMP_WORDS=(hawser volume inspect datab) COMP_CWORD=3',
    '_hawser',
    'echo "${COMPREPLY[@]}"',
  ].join('\n')
  const env = { ...server.env, PATH: `${dirname(launcher)}${delimiter}${process.env['PATH']}` }
  const { stdout, stderr } = await runProgram('bash', ['-c', script], { env })
  assert.equal(stdout.trim(), 'database', stderr)
})
