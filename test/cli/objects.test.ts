// Do the commands for objects say what they should, also when the user errs? Transcripts against a bare server.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Answer, Server } from '../kit/command-line.ts'
import { fileIn, hawser, stable, startServer } from '../kit/command-line.ts'
import { launcher } from '../kit/server-process.ts'

let server: Server
before(async () => void (server = await startServer('--bare', '--store', 'memory')))
after(() => server[Symbol.asyncDispose]())

const ok = ({ code, out, err }: Answer): string => {
  assert.equal(code, 0, out + err)
  return out
}

async function bound(claim: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (ok(await server.hawser('get', `pvc/${claim}`, '-o', 'json')).includes('"Bound"')) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.fail(`claim ${claim} was not bound`)
}

const volume = `apiVersion: v1
kind: PersistentVolume
metadata: { name: disk }
spec:
  capacity: { storage: 1Gi }
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: { path: /srv/disk }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  resources: { requests: { storage: 1Gi } }
`

test('who made what is in the audit log, without its body', async () => {
  const secret = fileIn(
    server.directory,
    'secret.yaml',
    'apiVersion: v1\nkind: Secret\nmetadata: { name: quiet }\nstringData: { key: hunter2 }\n',
  )
  ok(await server.hawser('apply', '-f', secret))
  const text = readFileSync(join(server.directory, 'audit.log'), 'utf8')
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  const made = lines.find(({ name, resource }) => resource === 'secrets' && name === 'quiet')
  assert.deepEqual([made?.['user'], made?.['namespace']], ['admin', 'default'], text)
  assert.ok(!text.includes('hunter2') && !text.includes(Buffer.from('hunter2').toString('base64')))
})

test('audit searches that log, and says where there is none', async () => {
  const found = ok(await server.hawser('audit', '--data-dir', server.directory, '--object', 'secret/quiet'))
  assert.match(found, /admin/)
  const none = ok(await server.hawser('audit', '--data-dir', server.directory, '--user', 'nobody-of-this-name'))
  assert.doesNotMatch(none, /secrets/)
  const nowhere = await server.hawser('audit', '--data-dir', '/nonexistent')
  assert.deepEqual([nowhere.code, /has no audit log/.test(nowhere.err)], [2, true], nowhere.err)
})

test('apply creates, then has nothing to do, then changes', async () => {
  const file = fileIn(server.directory, 'objects.yaml', volume)
  assert.equal(
    ok(await server.hawser('apply', '-f', file)),
    'persistentvolume/disk created\npersistentvolumeclaim/data created\n',
  )
  await bound('data')
  assert.match(ok(await server.hawser('apply', '-f', file)), /persistentvolume\/disk unchanged/)
  const labelled = fileIn(
    server.directory,
    'labelled.yaml',
    volume.replace('{ name: disk }', '{ name: disk, labels: { a: b } }'),
  )
  assert.match(ok(await server.hawser('apply', '-f', labelled)), /persistentvolume\/disk configured/)
  assert.match(
    ok(await server.hawser('apply', '-f', file, '--dry-run')),
    /persistentvolume\/disk configured \(dry run\)/,
  )
})

test('get shows tables, names, json and yaml', async () => {
  assert.equal(
    stable(ok(await server.hawser('get', 'pvc'))),
    [
      'NAME STATUS VOLUME CAPACITY ACCESS MODES STORAGECLASS VOLUMEATTRIBUTESCLASS AGE',
      'data Bound disk 1Gi RWO <unset> AGE',
    ].join('\n'),
  )
  assert.equal(
    ok(await server.hawser('get', 'pv,pvc', '-o', 'name')),
    'persistentvolume/disk\npersistentvolumeclaim/data\n',
  )
  const list = JSON.parse(ok(await server.hawser('get', 'pv', 'disk', '-o', 'json'))) as { metadata: { name: string } }
  assert.equal(list.metadata.name, 'disk')
  assert.match(
    ok(await server.hawser('get', 'pv/disk', '-o', 'yaml')),
    /^apiVersion: v1\nkind: PersistentVolume\n|^kind: PersistentVolume\napiVersion: v1\n/,
  )
  assert.match(ok(await server.hawser('get', 'pvc', '-A')), /^NAMESPACE/)
  assert.match(ok(await server.hawser('get', 'pvc', '-o', 'wide')), /VOLUMEMODE/)
})

test('get with nothing to show says so and succeeds', async () => {
  assert.deepEqual(await server.hawser('get', 'pods'), { code: 0, out: '', err: 'nothing found\n' })
})

test('describe shows an object with its events, and hides secrets', async () => {
  assert.match(ok(await server.hawser('describe', 'pvc/data')), /^Name: data\n[\s\S]*VolumeName: disk|volumeName: disk/)
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata: { name: key }\nstringData: { password: hunter2 }\n'
  ok(await server.hawser('apply', '-f', fileIn(server.directory, 'secret.yaml', secret)))
  const text = ok(await server.hawser('describe', 'secret/key'))
  assert.match(text, /password: 7 bytes/)
  assert.doesNotMatch(text, /hunter2|aHVudGVyMg/)
})

test('driver ls shows where a driver is and what uses it', async () => {
  assert.match((await server.hawser('driver', 'ls')).err, /no drivers; add one/)
  const objects = [
    'apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: { name: a.example.com }\nspec: { attachRequired: false }\n',
    'apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: { name: n1 }\nspec: { drivers: [{ name: a.example.com, nodeID: n1 }] }\n',
    'apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: { name: fast }\nprovisioner: a.example.com\n',
    'apiVersion: v1\nkind: PersistentVolume\nmetadata: { name: lone }\nspec: { capacity: { storage: 1Gi }, accessModes: [ReadWriteOnce], csi: { driver: gone.example.com, volumeHandle: x } }\n',
  ]
  const file = fileIn(server.directory, 'drivers.yaml', objects.join('---\n'))
  ok(await server.hawser('apply', '-f', file))
  assert.deepEqual(
    ok(await server.hawser('driver', 'ls'))
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/ +/)),
    [
      ['NAME', 'STATUS', 'NODES', 'CLASSES', 'VOLUMES', 'ATTACH'],
      ['a.example.com', 'ready', 'n1', 'fast', '0', 'no'],
      ['gone.example.com', 'unregistered', '-', '-', '1', 'yes'],
    ],
  )
  ok(await server.hawser('delete', '-f', file, '--yes'))
})

test('events are listed, also for one object', async () => {
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e1', namespace: 'default' },
    involvedObject: { kind: 'PersistentVolumeClaim', name: 'data', namespace: 'default' },
    reason: 'Tested',
    message: 'it was tested',
    type: 'Normal',
    lastTimestamp: new Date().toISOString(),
  }
  ok(await server.hawser('apply', '-f', fileIn(server.directory, 'event.json', JSON.stringify(event))))
  assert.match(
    stable(ok(await server.hawser('events', '--for', 'pvc/data'))),
    /TIME Normal Tested persistentvolumeclaim\/data 1 it was tested/,
  )
  assert.deepEqual(await server.hawser('events', '--for', 'pvc/other'), { code: 0, out: '', err: 'no events\n' })
  const names = ok(await server.hawser('events', '-A', '-o', 'name'))
  assert.match(names, /event\/e1/)
})

test('delete shows what is lost, wants a yes, and waits', async () => {
  const kept = volume.replaceAll('disk', 'old').replaceAll('name: data', 'name: olddata').replace('Retain', 'Delete')
  ok(await server.hawser('apply', '-f', fileIn(server.directory, 'old.yaml', kept)))
  await bound('olddata')
  const refused = await server.hawser('delete', 'pvc/olddata')
  assert.equal(refused.code, 2)
  assert.match(
    refused.err,
    /reclaim policy Delete, so its data will be deleted[\s\S]*nothing was done: confirmation is needed\n {2}try: add --yes/,
  )
  assert.match(ok(await server.hawser('get', 'pvc/olddata', '-o', 'name')), /olddata/)
  assert.equal(ok(await server.hawser('delete', 'pvc/olddata', '--yes')), 'persistentvolumeclaim/olddata deleted\n')
  assert.equal((await server.hawser('get', 'pvc/olddata')).code, 3)
})

test('a token works, with the rights of its role and no more', async () => {
  const config = fileIn(
    server.directory,
    'alice.kubeconfig',
    ok(await server.hawser('token', 'alice', '--as-kubeconfig')),
  )
  assert.match(ok(await hawser(['get', 'pvc', '--kubeconfig', config])), /data/)
  const refused = await hawser(['delete', 'pvc/data', '--kubeconfig', config, '--yes'])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /^hawser: .*forbidden/)
  assert.match(ok(await server.hawser('token', 'bob')), /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  assert.equal((await server.hawser('token', 'bob', '--hours', '0')).code, 2)
})

test('version names the server when there is one', async () => {
  assert.match(ok(await server.hawser('version')), /^hawser \d.*\nnode v?\d.*\nsqlite \d.*\nserver v1\.35/)
  assert.ok(!('server' in (JSON.parse(ok(await hawser(['version', '-o', 'json']))) as object)))
})

test('what is not there is exit code 3, in the words of Kubernetes', async () => {
  assert.deepEqual(await server.hawser('get', 'pvc/none'), {
    code: 3,
    out: '',
    err: 'hawser: persistentvolumeclaims "none" not found\n',
  })
  assert.equal((await server.hawser('describe', 'pod', 'none')).code, 3)
  assert.equal((await server.hawser('delete', 'pod/none')).code, 3)
  assert.equal((await server.hawser('logs', 'none')).code, 3)
  assert.equal((await server.hawser('volume', 'inspect', 'none')).code, 3)
  assert.equal((await server.hawser('volume', 'export', 'none')).code, 3)
  assert.equal((await server.hawser('volume', 'rm', 'none', '--yes')).code, 3)
  assert.equal((await server.hawser('volume', 'snapshot', 'none')).code, 3)
  assert.equal((await server.hawser('volume', 'restore', 'none', '--as', 'x')).code, 3)
  assert.equal((await server.hawser('volume', 'resize', 'none', '1Gi')).code, 3)
  assert.equal((await server.hawser('detach', 'pvc/none', 'n1')).code, 3)
  for (const verb of ['cordon', 'uncordon', 'drain'])
    assert.equal((await server.hawser('node', verb, 'none')).code, 3, verb)
  const run = await server.hawser('run', '--claim', 'none:/data', '--', 'true')
  assert.deepEqual(
    [run.code, run.err],
    [3, 'hawser: there is no claim "none" in namespace default\n  try: hawser volume create none --size 1Gi\n'],
  )
})

test('explain prints the page of a cause, and names those that are near a mistyped one', async () => {
  assert.match(ok(await hawser(['explain', 'classMissing'])), /class/i)
  const wrong = await hawser(['explain', 'noSuchCause'])
  assert.notEqual(wrong.code, 0)
  assert.doesNotMatch(wrong.err, /\n {4}at /)
})

test('events and why of what is not there say so', async () => {
  assert.deepEqual(await server.hawser('events', '--for', 'pvc/none'), { code: 0, out: '', err: 'no events\n' })
  assert.deepEqual(await server.hawser('why', 'pvc/none'), {
    code: 3,
    out: '',
    err: 'hawser: persistentvolumeclaims "none" not found\n',
  })
  assert.deepEqual(await server.hawser('events', '--for', 'what/none'), {
    code: 2,
    out: '',
    err: 'hawser: there is no resource type "what"\n  try: hawser get --help\n',
  })
})

const mistakes: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [['gte', 'pods'], /No command registered for `gte`, did you mean `get`\?/],
  [['get', 'pvx'], /no resource type "pvx"\n {2}try: did you mean .*pvc/],
  [['get', 'pods', '--ouput', 'json'], /No flag registered for --ouput, did you mean --output\?/],
  [['get', 'pods', '-o', 'jsn'], /did you mean "json"\?/],
  [['get', 'pods,pvc', 'name'], /names go with a single resource type/],
  [['get', 'pvc/a/b'], /"pvc\/a\/b" is not of the form TYPE\/NAME/],
  [['apply', '-f', '/nonexistent.yaml'], /nonexistent.yaml: no such file or directory/],
  [['delete', 'pods'], /name the objects, or use --all/],
  [['logs', 'pvc/data'], /only pods have logs/],
  [['logs', 'p', '--tail', 'x'], /"x" is not a number of lines/],
  [['volume', 'create', 'x'], /Expected input for flag --size/],
  [['volume', 'create', 'x', '--size', 'big'], /"big" is not a size; examples: 500Mi/],
  [['volume', 'create', 'x', '--size', '1Gi', '--mode', 'rw'], /"rw" is not one of RWO, ROX, RWX, RWOP/],
  [['run', '--claim', 'data', '--', 'true'], /"data" is not of the form CLAIM:\/PATH/],
  [['run', '--env', 'X', '--', 'true'], /"X" is not of the form NAME=VALUE/],
  [['detach', 'pvc/data', 'n1', '--force'], /--force needs a reason/],
  [['detach', 'pod/x', 'n1'], /neither a claim nor a volume/],
  [['completion', 'csh'], /"csh" is not one of bash, zsh, fish/],
]

for (const [args, says] of mistakes) {
  test(`a mistake is told in a sentence: hawser ${args.join(' ')}`, async () => {
    const { code, err } = await server.hawser(...args)
    assert.equal(code, 2, err)
    assert.match(err, says)
    assert.doesNotMatch(err, /\n {4}at /)
  })
}

test('files with mistakes are named', async () => {
  const broken = fileIn(server.directory, 'broken.yaml', 'a: [1')
  assert.match((await server.hawser('apply', '-f', broken)).err, /broken.yaml: /)
  const strange = fileIn(
    server.directory,
    'strange.yaml',
    'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: x }\n',
  )
  assert.match((await server.hawser('apply', '-f', strange)).err, /there is no kind Deployment in apps\/v1 here/)
  const invalid = fileIn(server.directory, 'invalid.yaml', volume.replace('1Gi', '-1Gi'))
  const answer = await server.hawser('apply', '-f', invalid)
  assert.equal(answer.code, 1)
  assert.match(answer.err, /hawser: PersistentVolume "disk" is invalid|hawser: .*must be greater than/)
})

test('volume commands on a server without nodes: pending is told, waiting ends with exit code 4', async () => {
  const waited = await server.hawser('volume', 'create', 'slow', '--size', '5Gi', '--timeout', '1')
  assert.equal(waited.code, 4)
  assert.match(waited.out, /persistentvolumeclaim\/slow created/)
  assert.match(
    waited.err,
    /not done after TIME|not done after 1\.0 s: waiting for a volume for claim slow\n {2}try: hawser why persistentvolumeclaim\/slow/,
  )
  const list = stable(ok(await server.hawser('volume', 'ls')))
  assert.match(list, /^NAME STATUS SIZE USED MODE CLASS USED BY ATTACHED TO\n/)
  assert.match(list, /slow Pending \(5Gi\) - RWO - - -/)
  assert.match(list, /data Bound 1Gi - RWO - - -/)
  const facts = JSON.parse(ok(await server.hawser('volume', 'inspect', 'data', '-o', 'json'))) as { volume: string }
  assert.equal(facts.volume, 'disk')
  const unready = await server.hawser('volume', 'snapshot', 'slow')
  assert.deepEqual(
    [unready.code, unready.err],
    [2, 'hawser: claim slow has no volume yet\n  try: hawser why persistentvolumeclaim/slow\n'],
  )
  assert.match((await server.hawser('volume', 'resize', 'data', '1Mi')).err, /volumes cannot shrink: data has 1Gi/)
  assert.equal((await server.hawser('volume', 'create', 'x', '--size', '1Gi', '--node', 'nowhere')).code, 3)
})

test('volume rm shows its plan and wants a yes', async () => {
  const refused = await server.hawser('volume', 'rm', 'slow')
  assert.equal(refused.code, 2)
  assert.match(refused.err, /delete claim slow: it has no volume yet\nhawser: nothing was done: confirmation is needed/)
  assert.equal(ok(await server.hawser('volume', 'rm', 'slow', '--yes')), 'persistentvolumeclaim/slow deleted\n')
})

test('no server is exit code 5', async () => {
  const never = await hawser(['get', 'pods'])
  assert.equal(never.code, 5)
  assert.match(
    never.err,
    /no server was started here: \/nonexistent\/hawser\/kubeconfig does not exist\n {2}try: (hawser up|a server of root keeps)/,
  )
  const gone =
    'apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{ name: a, cluster: { server: "https://127.0.0.1:1" } }]\ncontexts: [{ name: a, context: { cluster: a, user: a } }]\nusers: []\n'
  const config = fileIn(server.directory, 'gone.kubeconfig', gone)
  const dead = await hawser(['get', 'pods', '--kubeconfig', config])
  assert.equal(dead.code, 5)
  assert.match(dead.err, /the server cannot be reached: .*ECONNREFUSED/)
})

test('a reader that goes away is no error', () => {
  const { status } = spawnSync('bash', ['-o', 'pipefail', '-c', `'${launcher}' get pvc,pv -o yaml | head -1`], {
    env: { ...process.env, ...server.env },
  })
  assert.equal(status, 0)
})

test('every command has help with examples, and completion proposes it', async () => {
  const proposals = ok(await hawser(['__complete', '']))
    .trim()
    .split('\n')
  const expected = [
    'up',
    'demo',
    'get',
    'describe',
    'apply',
    'delete',
    'logs',
    'events',
    'volume',
    'run',
    'detach',
    'driver',
  ]
  for (const name of [...expected, 'doctor', 'backup', 'restore', 'sim', 'bench', 'token', 'completion', 'version'])
    assert.ok(proposals.includes(name), name)
  const inner = ['create', 'ls', 'inspect', 'resize', 'snapshot', 'restore', 'rm'].map((name) => ['volume', name])
  const drivers = ['check', 'rpc', 'serve'].map((name) => ['driver', name])
  for (const words of [
    ...proposals.filter((name) => !name.startsWith('-')).map((name) => [name]),
    ...inner,
    ...drivers,
  ]) {
    const help = ok(await hawser([...words, '--help']))
    assert.match(help, /Examples:\n {2}/, words.join(' '))
  }
  for (const shell of ['bash', 'zsh', 'fish'])
    assert.match(ok(await hawser(['completion', shell])), /hawser __complete/)
})

test('the doctor tells a server that refuses it from one that does not answer', async () => {
  const words = ['token', 'scraper', '--role', 'monitoring', '--as-kubeconfig']
  const config = fileIn(server.directory, 'scraper.kubeconfig', ok(await server.hawser(...words)))
  const { out } = await hawser(['doctor', '-o', 'json', '--kubeconfig', config], server.env)
  const findings = JSON.parse(out) as { level: string; about: string; text: string }[]
  assert.match(
    findings.find(({ about }) => about === 'server')?.text ?? out,
    /^the server refuses this user: .*forbidden/,
  )
})

test('the doctor asks the server of its data directory, also where $KUBECONFIG is of another cluster', async () => {
  const foreign = fileIn(
    server.directory,
    'foreign.kubeconfig',
    readFileSync(server.kubeconfig, 'utf8').replace(/server: \S+/, 'server: https://127.0.0.1:1'),
  )
  const { out } = await hawser(['doctor', '-o', 'json'], { ...server.env, KUBECONFIG: foreign })
  const findings = JSON.parse(out) as { level: string; about: string; text: string }[]
  assert.deepEqual(
    findings.filter(({ about }) => about === 'server').map(({ level }) => level),
    ['ok'],
    out,
  )
})
