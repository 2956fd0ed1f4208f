// Do all objects get from a data directory into etcd and back, and is every wrong or interrupted move told or finished? The program
// as a user runs it, as docs/how-to/move-to-etcd.md says, on a real etcd.
import assert from 'node:assert/strict'
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startEtcd } from '../kit/etcd.ts'
import type { Etcd } from '../kit/etcd.ts'
import { launcher, repository, runProgram, startServer } from '../kit/server-process.ts'
import type { ServerProcess } from '../kit/server-process.ts'

const scratchRoot = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-migrate-')))
after(() => rmSync(scratchRoot, { recursive: true, force: true }))

const etcdArgs = (etcd: Etcd) => ['--bare', '--store', 'etcd', '--etcd-servers', etcd.urls.join(',')]
const etcdPlace = (etcd: Etcd) => `etcd:${etcd.urls.join(',')}`

async function run(...args: readonly string[]) {
  const { code, stdout, stderr } = await runProgram(launcher, args)
  return { code, text: stdout + stderr }
}

async function succeed(...args: readonly string[]): Promise<string> {
  const { code, text } = await run(...args)
  assert.equal(code, 0, `hawser ${args.join(' ')}\n${text}`)
  return text
}

async function refused(expected: RegExp, ...args: readonly string[]): Promise<void> {
  const { code, text } = await run(...args)
  assert.notEqual(code, 0, text)
  assert.match(text, expected)
}

async function names(server: ServerProcess, resource: string): Promise<string> {
  return await succeed('get', resource, '-A', '-o', 'name', '--kubeconfig', server.kubeconfig)
}

function volumes(count: number): string {
  const file = join(mkdtempSync(join(scratchRoot, 'volumes-')), 'volumes.json')
  const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/nowhere' } }
  const items = Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `data-${index}`, annotations: { note: 'ümläut \u0000 \n' } },
    spec,
  }))
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  return file
}

test('objects move to etcd and back, and the place that they left is closed', { timeout: 120_000 }, async () => {
  await using etcd = await startEtcd()
  await using server = await startServer(['--bare'])
  const directory = server.dataDirectory
  const move = ['store', 'migrate', '--from', `sqlite:${directory}`, '--to', etcdPlace(etcd)]
  const back = ['store', 'migrate', '--from', etcdPlace(etcd), '--to', `sqlite:${directory}`]
  await succeed('apply', '-f', volumes(150), '--kubeconfig', server.kubeconfig)
  const before = await names(server, 'pv')
  await refused(/a server uses the data directory .* \(process \d+\)/, ...move)
  await refused(/a server uses the data directory/, 'store', 'check', `sqlite:${directory}`)
  await server.stop()

  const sound = await succeed('store', 'check', `sqlite:${directory}`)
  assert.match(sound, /persistentvolumes +150 +kube-apiserver/)
  assert.match(sound, /\d+ objects, 0 with problems, sha256 [0-9a-f]{64}/)
  await refused(/is empty or missing.*move the objects of the directory there/s, ...up(directory, etcdArgs(etcd)))
  const moved = await succeed(...move)
  const [, digest] = /compared \(sha256 ([0-9a-f]{64})\)/.exec(moved) ?? []
  assert.ok(digest, moved)
  assert.ok(!existsSync(join(directory, 'store.db')))
  assert.match(moved, /kept in .*store\.db\.moved-/)
  assert.ok((await succeed('store', 'check', etcdPlace(etcd))).includes(digest))
  await refused(/the objects of .* are in etcd, not in the directory.*--store etcd/s, ...up(directory, ['--bare']))
  await refused(/are in etcd already/, ...move)
  {
    await using onEtcd = await startServer(etcdArgs(etcd), { dataDirectory: directory })
    assert.equal(await names(onEtcd, 'pv'), before)
    assert.equal(onEtcd.token, server.token)
    await succeed('delete', 'pv/data-7', '--yes', '--kubeconfig', onEtcd.kubeconfig)
    await succeed('store', 'check', etcdPlace(etcd))
    await refused(/a server uses the data directory/, ...back)
  }

  const returned = await succeed(...back)
  assert.match(returned, /objects moved from etcd:.* to sqlite:/)
  await refused(/were moved to .*start Hawser there.*etcdctl del/s, ...up(directory, etcdArgs(etcd)))
  await refused(/holds objects \(store\.db\)/, ...back)
  await refused(/were moved to/, ...move)
  await server.restart()
  assert.equal(await names(server, 'pv'), before.replace('persistentvolume/data-7\n', ''))
  // Files of the move hold secrets, too.
  for (const name of readdirSync(directory).filter((each) => each.startsWith('store.db')))
    assert.equal(statSync(join(directory, name)).mode & 0o077, 0, name)
})

test('a move that was interrupted goes on, and nobody serves half of the objects', { timeout: 120_000 }, async () => {
  await using etcd = await startEtcd({ args: ['--max-request-bytes', '100000'] })
  await using server = await startServer(['--bare'])
  const directory = server.dataDirectory
  await succeed('apply', '-f', volumes(150), '--kubeconfig', server.kubeconfig)
  const large = join(scratchRoot, 'large.json')
  const metadata = { name: 'large', namespace: 'default' }
  writeFileSync(
    large,
    JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { a: 'x'.repeat(2e5) } }),
  )
  await succeed('apply', '-f', large, '--kubeconfig', server.kubeconfig)
  const before = await names(server, 'pv')
  await server.stop()
  const move = ['store', 'migrate', '--from', `sqlite:${directory}`, '--to', etcdPlace(etcd)]
  await refused(/refuses the object .* larger than etcd's --max-request-bytes/, ...move)
  assert.match(etcd.ctl('get', '/registry/persistentvolumes/data-0'), /PersistentVolume/)
  const other = up(join(scratchRoot, 'new'), etcdArgs(etcd))
  await refused(/a part of the objects of .*Give the command that moves them again/s, ...other)
  // The directory is still in use: what happens there meanwhile is moved, too.
  await server.restart()
  await succeed('delete', 'secret/large', 'pv/data-3', '--yes', '--kubeconfig', server.kubeconfig)
  await server.stop()
  await succeed(...move)
  await using onEtcd = await startServer(etcdArgs(etcd), { dataDirectory: directory })
  assert.equal(await names(onEtcd, 'pv'), before.replace('persistentvolume/data-3\n', ''))
})

test('a target that holds anything else is refused, and what is not sound is named', { timeout: 120_000 }, async () => {
  await using etcd = await startEtcd()
  await using server = await startServer(['--bare'])
  await server.stop()
  const directory = server.dataDirectory
  const move = ['store', 'migrate', '--from', `sqlite:${directory}`, '--to', etcdPlace(etcd)]
  etcd.ctl('put', '/registry/pods/default/theirs', '{}')
  await refused(/is not empty \(1 keys, the first is \/registry\/pods\/default\/theirs\)/, ...move)
  const { code, text } = await run('store', 'check', etcdPlace(etcd))
  assert.equal(code, 4, text)
  assert.match(text, /\/registry\/pods\/default\/theirs: it is undefined of undefined/)
  etcd.ctl('del', '/registry/pods/default/theirs')
  const bad = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'Wrong_Name', uid: 'u' } }
  etcd.ctl('put', '/registry/namespaces/Wrong_Name', JSON.stringify(bad))
  etcd.ctl('put', '/registry/deployments/default/web', '{}')
  const checked = await run('store', 'check', etcdPlace(etcd))
  assert.match(checked.text, /namespaces\/Wrong_Name: metadata.name: Invalid value: "Wrong_Name"/)
  assert.match(checked.text, /1 keys are of other programs/)

  await refused(/between a data directory and etcd/, 'store', 'migrate', '--from', 'sqlite:/a', '--to', 'sqlite:/b')
  await refused(/a place is sqlite:DIR or etcd:URL/, 'store', 'check', directory)
  await refused(/etcd: takes addresses like/, 'store', 'check', 'etcd:nowhere')
  await refused(/there is no data directory/, 'store', 'check', `sqlite:${directory}/missing`)
  const dead = 'etcd:http://127.0.0.1:1'
  await refused(/does not answer/, 'store', 'migrate', '--from', `sqlite:${directory}`, '--to', dead)
  await server.restart()
})

test('the commands of docs/how-to/move-to-etcd.md', { timeout: 120_000 }, async () => {
  await using etcd = await startEtcd()
  await using server = await startServer(['--bare'])
  await server.stop()
  const page = readFileSync(join(repository, 'docs/how-to/move-to-etcd.md'), 'utf8')
  const lines = [...page.matchAll(/^ *hawser .*$/gm)].map(([line]) =>
    line.trim().replaceAll('/var/lib/hawser', server.dataDirectory).replaceAll('http://127.0.0.1:2379', etcd.urls[0]!),
  )
  assert.equal(lines.length, 5)
  for (const line of lines) {
    const [, command, ...args] = line.split(' ')
    if (command === 'up') {
      await using _serving = await startServer(['--bare', ...args], { dataDirectory: server.dataDirectory })
    } else await succeed(...line.split(' ').slice(1))
  }
})

const up = (directory: string, args: readonly string[]) => [
  'up',
  '--data-dir',
  directory,
  '--listen',
  '127.0.0.1:0',
  ...args,
]
