// Does a machine join by the command that the server prints, and leave again? One machine plays both parts here;
// test/linux/two-machines.test.ts has two. Real mounts: needs root.
import assert from 'node:assert/strict'
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { fileIn, hawser, isRoot, spawnHawser, startServer } from '../kit/command-line.ts'
import { speaking } from '../kit/speaking.ts'

let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-join-'))))
after(() => rmSync(place, { recursive: true, force: true }))

const own = Object.values(networkInterfaces())
  .flatMap((entries) => entries ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address
const needs = { skip: (!isRoot && 'needs root') || (own === undefined && 'this machine has no address but loopback') }

const pod =
  '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"nodeName":"worker","terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"none","command":["sleep","600"],"volumeMounts":[{"name":"d","mountPath":"/d"}]}],"volumes":[{"name":"d","emptyDir":{}}]}}'

test('a server on loopback prints no command, and says why', async () => {
  await using server = await startServer('--bare')
  const answer = await server.hawser('token', 'join-command')
  assert.equal(answer.code, 2)
  assert.match(
    answer.err,
    /the server listens on this machine only: no other machine can join\n {2}try: start it with --listen 0\.0\.0\.0:7443/,
  )
  assert.equal((await server.hawser('token', 'create', '--role', 'node-bootstrap')).code, 0)
  assert.match((await server.hawser('token', 'create', '--role', 'node-bootstrap', '--uses', '0')).err, /--uses takes/)
})

test('a machine joins, restarts without the token, is drained, and is shut out when it is removed', needs, async () => {
  await using server = await startServer('--bare', '--listen', `${own}:0`)
  await using stack = new AsyncDisposableStack()
  const data = mkdtempSync(join(place, 'data-'))
  stack.defer(async () => void (await removeEverything(data)))
  const printed = (await server.hawser('token', 'join-command')).out.trim()
  const [, token = '', url = '', hash = ''] =
    /^HAWSER_JOIN_TOKEN=(\S+) hawser agent --join (\S+) --ca-hash (sha256:[0-9a-f]{64})$/.exec(printed) ?? []
  assert.match(url, new RegExp(`^https://${own}:\\d+$`), printed)
  const where = ['--data-dir', data, '--node-name', 'worker']
  const joining = ['agent', '--join', url, '--ca-hash', hash, ...where]
  {
    await using agent = speaking(joining, { HAWSER_JOIN_TOKEN: token })
    await agent.says(/^node worker is up$/m)
    await server.hawser('apply', '-f', fileIn(place, 'pod.json', pod))
    await until(async () => /"phase": "Running"/.test((await server.hawser('get', 'pod/there', '-o', 'json')).out))
    const environment = readFileSync(`/proc/${pidOfPod()}/environ`, 'utf8')
    assert.ok(!environment.includes(token), 'the pod does not get the token')
  }
  for (const file of ['node-client.pem', 'agent.kubeconfig'])
    assert.equal(statSync(join(data, file)).mode & 0o777, 0o600, file)
  const kubeconfig = join(data, 'agent.kubeconfig')
  assert.equal((await hawser(['get', 'secrets', '-A', '--kubeconfig', kubeconfig])).code, 1)
  {
    const renamed = spawnHawser(['agent', '--data-dir', data, '--node-name', 'other'])
    assert.deepEqual([renamed.code, renamed.err], [2, contradiction(data)])
    const moved = spawnHawser(['agent', '--data-dir', data, '--join', 'https://127.0.0.1:1'])
    assert.equal(moved.code, 5, moved.err)
    assert.match(
      moved.err,
      new RegExp(`node worker has joined the server at ${url}; .*https://127.0.0.1:1 .*ECONNREFUSED`),
    )
    await using agent = speaking(['agent', '--data-dir', data])
    await agent.says(/^node worker is up$/m)
    const removal = await server.hawser('node', 'rm', 'worker', '--yes')
    assert.match(removal.err, /node worker still has 1 pods; first: hawser node drain worker/)
    const drained = await server.hawser('node', 'drain', 'worker')
    assert.equal(drained.out, 'pod there is removed\nnode worker is drained\n', drained.err)
    assert.match((await server.hawser('get', 'nodes')).out, /worker\s+Ready,SchedulingDisabled/)
    assert.equal((await server.hawser('node', 'uncordon', 'worker')).out, 'node worker gets pods again\n')
    assert.equal((await server.hawser('node', 'rm', 'worker', '--yes')).out, 'node worker is removed\n')
    assert.match((await hawser(['get', 'node/worker', '--kubeconfig', kubeconfig])).err, /Unauthorized/)
  }
  const { out } = await server.hawser('get', 'nodes')
  assert.doesNotMatch(out, /worker/)
  const again = spawnHawser([...joining, '--token', token])
  assert.equal(again.code, 2)
  assert.match(again.err, /refuses: .*this token is used up; "hawser token join-command" on the server makes a new one/)
})

test('an agent that is sent to another server, or with a wrong token, says what is wrong', needs, async () => {
  await using server = await startServer('--bare', '--listen', `${own}:0`)
  const [, , url = '', hash = ''] =
    /TOKEN=(\S+) .*--join (\S+) --ca-hash (\S+)/.exec((await server.hawser('token', 'join-command')).out) ?? []
  const where = ['--data-dir', join(place, 'none'), '--node-name', 'worker']
  const joining = (...more: string[]) => spawnHawser(['agent', '--join', url, ...where, ...more])
  const wrong = joining('--ca-hash', hash, '--token', 'abcdef.0123456789abcdef')
  assert.deepEqual(
    [wrong.code, wrong.err.includes(`the server at ${url} does not take the token`)],
    [2, true],
    wrong.err,
  )
  const other = joining('--ca-hash', `sha256:${'0'.repeat(64)}`, '--token', 'abcdef.0123456789abcdef')
  assert.match(other.err, /does not have the authority sha256:000.*it is another server, or somebody is in between/)
  assert.match(
    joining('--ca-hash', hash).err,
    /--join needs a token and --ca-hash\n {2}try: .*hawser token join-command/,
  )
  const nobody = spawnHawser(['agent', '--join', 'https://127.0.0.1:1', '--ca-hash', hash, '--token', 'x', ...where])
  assert.deepEqual(
    [nobody.code, /https:\/\/127\.0\.0\.1:1 cannot be reached: ECONNREFUSED/.test(nobody.err)],
    [5, true],
  )
  assert.deepEqual(globSync(join(place, 'none/node-client.pem')), [])
})

const contradiction = (data: string) =>
  `hawser: the agent in ${data} has joined as node worker, so it cannot be node other\n` +
  '  try: leave --node-name out, or join as node other in another directory (--data-dir DIR); ' +
  'to rename this one, join with a new token; before that, on the server: hawser node rm worker\n'

function pidOfPod(): string {
  const found = globSync('/proc/[0-9]*/cmdline').find((file) => {
    try {
      return readFileSync(file, 'utf8') === 'sleep\u0000600\u0000'
    } catch {
      return false // it has ended
    }
  })
  assert.ok(found, 'the pod runs')
  return found.split('/')[2] ?? ''
}

/** For half a minute at most; whoever asks looks once more. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 300 && !(await isSo()); tries++) await new Promise((resolve) => setTimeout(resolve, 100))
}
