// Does `hawser agent` serve a node for a server elsewhere, and does it say what is in its way? Real mounts: needs root.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { fileIn, isRoot, spawnHawser, startServer } from '../kit/command-line.ts'
import { launcher } from '../kit/server-process.ts'
import { speaking } from '../kit/speaking.ts'

const needs = { skip: !isRoot && 'needs root' }
let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-agent-'))))
after(() => rmSync(place, { recursive: true, force: true }))

const pod =
  '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"nodeName":"worker","containers":[{"name":"c","image":"none","command":["sh","-c","echo hello > /d/file; exec sleep 600"],"volumeMounts":[{"name":"d","mountPath":"/d"}]}],"volumes":[{"name":"d","emptyDir":{}}]}}'
const noServer =
  'apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{ name: a, cluster: { server: "https://127.0.0.1:1" } }]\ncontexts: [{ name: a, context: { cluster: a, user: a } }]\nusers: []\n'

test('an agent joins a server, runs a pod with a volume, and stops when it is told', needs, async () => {
  await using server = await startServer('--bare')
  await using stack = new AsyncDisposableStack()
  const data = mkdtempSync(join(place, 'data-'))
  stack.defer(async () => void (await removeEverything(data)))
  const agent = speaking(['agent', '--kubeconfig', server.kubeconfig, '--data-dir', data, '--node-name', 'worker'])
  stack.defer(() => void agent.child.kill('SIGKILL'))
  await agent.says(/^node worker is up$/m)
  await server.hawser('apply', '-f', fileIn(place, 'pod.json', pod))
  for (let tries = 0; tries < 200; tries++) {
    if (/"phase": "Running"/.test((await server.hawser('get', 'pod/there', '-o', 'json')).out)) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const why = await server.hawser('why', 'pod/there')
  assert.deepEqual([why.code, why.err], [0, ''], why.out)
  assert.match(why.out, /it is scheduled on worker/)
  await server.hawser('delete', 'pod/there', '--yes')
  await until(() => podsIn(data) === 0)
  agent.child.kill('SIGTERM')
  await once(agent.child, 'exit')
  assert.equal(agent.child.exitCode, 0)
  assert.match(agent.text(), /SIGTERM: stopping \(pods and their mounts stay; the next agent takes them over\)/)
})

test('an agent says which file, name, driver or right it lacks', () => {
  const missing = spawnHawser(['agent', '--kubeconfig', '/nonexistent', '--data-dir', join(place, 'none')])
  assert.deepEqual(
    [missing.code, missing.err],
    [
      2,
      'hawser: cannot read the kubeconfig /nonexistent: ENOENT\n  try: start a server with "hawser up", or name its file with --kubeconfig FILE\n',
    ],
  )
  const config = fileIn(place, 'gone.kubeconfig', noServer)
  const name = spawnHawser(['agent', '--kubeconfig', config, '--node-name', 'A_B'])
  assert.deepEqual(
    [name.code, name.err],
    [2, 'hawser: "A_B" is not a valid node name\n  try: choose one with --node-name\n'],
  )
  const driver = spawnHawser(['agent', '--kubeconfig', config, '--csi-driver', 'x'])
  assert.equal(driver.code, 2)
  assert.match(driver.err, /--csi-driver takes NAME=SOCKET, not "x"/)
})

test('an agent without rights says what helps', { skip: !isRoot && 'needs root to become nobody' }, () => {
  const config = fileIn(place, 'gone.kubeconfig', noServer)
  spawnSync('chmod', ['-R', 'a+rX', place])
  // CI's own directory for temporary files is closed to others.
  spawnSync('chmod', ['a+X', tmpdir()])
  const nobody = ['--reuid', '65534', '--clear-groups', '--inh-caps=-all', '--bounding-set=-all', launcher]
  const args = [...nobody, 'agent', '--kubeconfig', config, '--data-dir', '/tmp/hawser-never']
  const env = { ...process.env, NODE_COMPILE_CACHE: '' }
  const { status, stderr } = spawnSync('setpriv', args, { env, encoding: 'utf8', timeout: 30_000 })
  assert.equal(status, 2, stderr)
  assert.match(stderr, /a node must mount filesystems, and this user may not\n {2}try: sudo hawser agent/)
  assert.ok(!existsSync('/tmp/hawser-never'))
})

test('pods of manifests run before the server has answered, and run on when it does', needs, async () => {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startServer('--bare'))
  await server.stop()
  const [data, manifests] = [mkdtempSync(join(place, 'data-')), mkdtempSync(join(place, 'manifests-'))]
  stack.defer(async () => void (await removeEverything(data)))
  fileIn(manifests, 'there.json', pod)
  const files = ['--kubeconfig', server.kubeconfig, '--data-dir', data, '--manifests', manifests]
  const agent = speaking(['agent', ...files, '--node-name', 'worker'])
  stack.defer(() => void agent.child.kill('SIGKILL'))
  const written = () => globSync(join(data, '**/kubernetes.io~empty-dir/d/file')).length
  await until(() => written() === 1)
  assert.equal(written(), 1, agent.text())
  assert.doesNotMatch(agent.text(), /is up/)

  const address = /server: https:\/\/(\S+)/.exec(readFileSync(server.kubeconfig, 'utf8'))?.[1] ?? ''
  const again = speaking(['up', '--bare', '--data-dir', server.directory, '--listen', address])
  stack.defer(async () => {
    again.child.kill('SIGTERM')
    await once(again.child, 'exit')
  })
  await agent.says(/^node worker is up$/m)
  assert.match((await server.hawser('get', 'nodes')).out, /worker/)
  assert.equal(written(), 1)
  rmSync(join(manifests, 'there.json'))
  await until(() => podsIn(data) === 0)
  assert.equal(podsIn(data), 0)
})

test('an agent whose server does not answer says so, and can be stopped: exit code 5', needs, async () => {
  await using stack = new AsyncDisposableStack()
  const config = fileIn(place, 'gone.kubeconfig', noServer)
  const data = mkdtempSync(join(place, 'data-'))
  stack.defer(async () => void (await removeEverything(data)))
  const agent = speaking(['agent', '--kubeconfig', config, '--data-dir', data, '--node-name', 'w'])
  stack.defer(() => void agent.child.kill('SIGKILL'))
  await agent.says(
    /the server at https:\/\/127\.0\.0\.1:1 has not answered yet; .*\n {2}try: hawser get nodes --kubeconfig/,
  )
  agent.child.kill('SIGINT')
  await once(agent.child, 'exit')
  assert.equal(agent.child.exitCode, 5, agent.text())
})

/** A pod's directory goes last, behind its containers and volumes. */
const podsIn = (data: string) => globSync(join(data, 'node/pods/*')).length

/** For half a minute at most; whoever asks looks once more. */
async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 600 && !isSo(); tries++) await new Promise((resolve) => setTimeout(resolve, 50))
}
