// Do `hawser exec`, `attach`, `cp` and `port-forward` do what they say? A real server with a node, as a user would call them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { launcher, nobodyTypes, runProgram } from '../kit/server-process.ts'
import type { Server } from '../kit/command-line.ts'
import { fileIn, isRoot, startServer } from '../kit/command-line.ts'

const skip = isRoot ? false : 'needs root'
let server: Server

const manifest = `apiVersion: v1
kind: Pod
metadata: { name: looked }
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: none
      command: [sh, -c, 'while :; do echo tick; sleep 0.2; done']
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, emptyDir: {} }]
`

before(async () => {
  if (skip) return
  server = await startServer('--store', 'memory', '--node-name', 'n1')
  assert.equal((await server.hawser('apply', '-f', fileIn(server.directory, 'pod.yaml', manifest))).code, 0)
  for (let tries = 0; tries < 300; tries++) {
    const { out } = await server.hawser('get', 'pod/looked', '-o', 'json')
    if (out.includes('"phase": "Running"') || out.includes('"phase":"Running"')) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail('the pod does not run')
})
after(async () => {
  if (skip) return
  await server.hawser('delete', 'pod/looked', '--yes')
  await server[Symbol.asyncDispose]()
})

const hawser = (words: readonly string[], input?: string) =>
  runProgram(launcher, words, { env: server.env, ...(input === undefined ? {} : { input }) })

test('exec: streams, exit code, terminal, and what is wrong', { skip, timeout: 60_000 }, async () => {
  const said = await hawser(['exec', 'looked', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'])
  assert.deepEqual(said, { code: 7, stdout: 'out\n', stderr: 'err\n' })
  const piped = await hawser(['exec', 'pod/looked', '-i', '--', 'wc', '-c'], 'x'.repeat(200_000))
  assert.deepEqual([piped.code, piped.stdout.trim()], [0, '200000'])
  const inside = `${launcher} exec looked -it -- sh -c 'stty size; tty'`
  const words = ['-qec', `stty rows 20 cols 90; ${inside}`, '/dev/null']
  const terminal = await runProgram('script', words, { env: server.env, input: nobodyTypes })
  assert.match(terminal.stdout, /20 90\r+\n\/dev\/pts\/\d+\r+\n/)
  const none = await hawser(['exec', 'nobody', '--', 'true'])
  assert.deepEqual([none.code, none.stderr], [3, 'hawser: pods "nobody" not found\n'])
  const wrong = await hawser(['exec', 'looked', '-c', 'nope', '--', 'true'])
  assert.deepEqual([wrong.code, wrong.stderr], [1, 'hawser: container nope is not valid for pod looked\n'])
})

test('attach listens from now on, to what is there', { skip, timeout: 60_000 }, async () => {
  const child = spawn(launcher, ['attach', 'looked'], { env: { ...process.env, ...server.env } })
  let text = ''
  child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()))
  while (text.split('\n').length <= 3) await once(child.stdout, 'data')
  child.kill()
  await once(child, 'exit')
  assert.match(text, /^(tick\n){3}/)
  const none = await hawser(['attach', 'nobody'])
  assert.deepEqual([none.code, none.stderr], [3, 'hawser: pods "nobody" not found\n'])
  assert.equal((await hawser(['attach', 'pvc/data'])).code, 2)
})

test('cp: a file and a tree, there and back', { skip, timeout: 60_000 }, async () => {
  const at = (...names: string[]) => join(server.directory, ...names)
  const bytes = randomBytes(5_000_000)
  writeFileSync(at('here'), bytes)
  assert.equal((await hawser(['cp', at('here'), 'looked:/data/copy'])).code, 0)
  assert.equal((await hawser(['cp', 'looked:/data/copy', at('back')])).code, 0)
  assert.ok(readFileSync(at('back')).equals(bytes))
  mkdirSync(at('tree', 'sub'), { recursive: true })
  writeFileSync(at('tree', 'sub', 'f'), 'deep')
  assert.equal((await hawser(['cp', at('tree'), 'looked:/data/tree'])).code, 0)
  assert.equal((await hawser(['cp', 'looked:/data/tree', at('tree-back')])).code, 0)
  assert.equal(readFileSync(at('tree-back', 'sub', 'f'), 'utf8'), 'deep')
  const none = await hawser(['cp', 'looked:/nothing', at('nothing')])
  assert.deepEqual([none.code, none.stderr], [3, 'hawser: there is no /nothing in pod looked\n'])
  assert.equal(existsSync(at('nothing')), false)
  assert.equal((await hawser(['cp', at('nothing'), 'looked:/data/x'])).code, 3)
  assert.equal((await hawser(['cp', 'a', 'b'])).code, 2)
})

test(
  'cp: what a pod should not send is left out, and a failure costs nothing here',
  { skip, timeout: 60_000 },
  async () => {
    const at = (...names: string[]) => join(server.directory, ...names)
    const script =
      'mkdir -p /data/bad/sub; ln -s /etc /data/bad/out; ln -s sub /data/bad/in; cp /bin/true /data/bad/su; chmod 4755 /data/bad/su; mkfifo /data/bad/fifo'
    assert.equal((await hawser(['exec', 'looked', '--', 'sh', '-c', script])).code, 0)
    const { code, stderr } = await hawser(['cp', 'looked:/data/bad', at('bad')])
    assert.equal(code, 0)
    assert.deepEqual(stderr.trim().split('\n').toSorted(), [
      'left out "./fifo": it is neither a file nor a directory nor a link',
      'left out "./out": it is a link to "/etc"',
    ])
    assert.deepEqual(readdirSync(at('bad')).toSorted(), ['in', 'su', 'sub'])
    assert.equal(statSync(at('bad', 'su')).mode & 0o7000, 0)
    writeFileSync(at('kept'), 'kept')
    const unreadable = await hawser(['cp', 'looked:/proc/self/mem', at('kept')])
    assert.equal(unreadable.code, 1)
    assert.match(unreadable.stderr, /^hawser: copying \/proc\/self\/mem to \S+ in pod looked failed: cat: [^\n]+\n$/)
    assert.equal(readFileSync(at('kept'), 'utf8'), 'kept')
    const full = await hawser(['cp', 'looked:/bin/true', '/dev/full'])
    assert.equal(full.code, 1)
    assert.match(full.stderr, /^hawser: ENOSPC[^\n]+; \/dev\/full is incomplete\n$/)
    const nowhere = await hawser(['cp', at('kept'), 'looked:/nothing/here'])
    assert.equal(nowhere.code, 1)
    assert.match(nowhere.stderr, /^hawser: copying \S+ to \/nothing\/here in pod looked failed: [^\n]+\n$/)
  },
)

test('port-forward: a port here is a port there', { skip, timeout: 60_000 }, async () => {
  const echo = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket))
  echo.listen(0, '127.0.0.1')
  await once(echo, 'listening')
  const { port } = echo.address() as AddressInfo
  const child = spawn(launcher, ['port-forward', 'looked', `:${port}`], { env: { ...process.env, ...server.env } })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const local = Number(/^127\.0\.0\.1:(\d+) -> \d+\n$/.exec(line.toString())?.[1])
  const socket = connect({ port: local, host: '127.0.0.1', allowHalfOpen: true })
  let got = 0
  socket.on('data', (bytes: Buffer) => (got += bytes.length))
  socket.end(Buffer.alloc(500_000))
  await once(socket, 'end')
  assert.equal(got, 500_000)
  child.kill('SIGINT')
  assert.deepEqual(await once(child, 'exit'), [0, null])
  echo.close()
  assert.equal((await hawser(['port-forward', 'looked', 'http'])).code, 2)
})
