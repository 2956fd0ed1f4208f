// Does `hawser doctor --fix` remove orphans, and nothing else? Each kind is made for real beside a running server, with a look-alike
// that belongs to somebody: only the orphan goes.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startServer } from '../kit/command-line.ts'
import type { Server } from '../kit/command-line.ts'
import { loopsBelow, mountsBelow, needsRoot, until } from '../kit/machine.ts'

const options = { skip: needsRoot, timeout: 120_000 }
const driver = 'local.hawser.dev'

function tool(name: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(name, args, { encoding: 'utf8' })
  assert.equal(status, 0, `${name} ${args.join(' ')}: ${stderr}`)
  return stdout.trim()
}

/** A directory of a pod with a memory volume that holds a file. */
function podDirectory({ directory }: Server, uid: string): string {
  const volume = join(directory, 'node/pods', uid, 'volumes/kubernetes.io~empty-dir/m')
  mkdirSync(volume, { recursive: true })
  tool('mount', '-t', 'tmpfs', 'tmpfs', volume)
  writeFileSync(join(volume, 'file'), 'x')
  return join(directory, 'node/pods', uid)
}

function stagingDirectory({ directory }: Server, handle: string): string {
  const path = join(
    directory,
    'node/plugins/kubernetes.io/csi',
    driver,
    createHash('sha256').update(handle).digest('hex'),
  )
  mkdirSync(join(path, 'globalmount'), { recursive: true })
  writeFileSync(join(path, 'vol_data.json'), JSON.stringify({ driverName: driver, volumeHandle: handle }))
  tool('mount', '-t', 'tmpfs', 'tmpfs', join(path, 'globalmount'))
  return path
}

/** An image where the driver keeps its own, with a loop device on it. */
function loopOf(file: string): string {
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, '')
  truncateSync(file, 16 << 20)
  return tool('losetup', '--find', '--show', file)
}

const fix = (server: Server, ...more: string[]) =>
  server.hawser('doctor', '--fix', '--yes', '--older-than', '0.001', ...more)
const isBound = (loop: string) => spawnSync('losetup', [loop]).status === 0

test('every kind of orphan goes; what belongs to somebody stays', options, async () => {
  await using server = await startServer()
  const { directory } = server
  using cleanup = new DisposableStack()
  const orphan = podDirectory(server, randomUUID())
  const stranger = podDirectory(server, randomUUID())
  mkdirSync(join(stranger, 'backup'))
  tool('mount', '-t', 'tmpfs', 'tmpfs', join(stranger, 'backup'))
  const named = podDirectory(server, 'my-own-files')
  const runs = podDirectory(server, randomUUID())
  const sleeper = spawn('sleep', ['600'])
  cleanup.defer(() => void sleeper.kill('SIGKILL'))
  const attempt = join(directory, 'containers/n', runs.slice(runs.lastIndexOf('/') + 1), 'c/0')
  mkdirSync(attempt, { recursive: true })
  writeFileSync(join(attempt, 'pid'), `${sleeper.pid} 0`)
  cleanup.defer(() => {
    for (const path of mountsBelow(join(directory, 'node/pods')).toReversed()) spawnSync('umount', [path])
    rmSync(join(directory, 'containers/n'), { recursive: true })
  })
  const staging = stagingDirectory(server, 'nobody')
  const deleted = loopOf(join(directory, 'volumes/volumes/gone/image'))
  rmSync(join(directory, 'volumes/volumes/gone'), { recursive: true })
  const elsewhere = loopOf(join(directory, 'mine/disk.img'))
  const used = loopOf(join(directory, 'volumes/volumes/used/image'))
  tool('mkfs.ext4', '-q', used)
  const usedAt = join(directory, 'mine/mounted')
  mkdirSync(usedAt)
  tool('mount', used, usedAt)
  rmSync(join(directory, 'volumes/volumes/used/image'))
  cleanup.defer(() => {
    spawnSync('umount', [usedAt])
    for (const loop of [elsewhere, used]) spawnSync('losetup', ['-d', loop])
  })

  const asked = await server.hawser('doctor', '--fix', '--older-than', '0.001')
  assert.match(asked.err, /nothing was done: confirmation is needed/)
  assert.match(asked.err, new RegExp(`unmount ${orphan}/volumes`), 'the plan comes before the question')
  assert.ok(existsSync(orphan) && isBound(deleted))

  const { code, out } = await fix(server)
  assert.equal(code, 0, out)
  for (const path of [orphan, staging]) assert.ok(!existsSync(path), `${path} is still there:\n${out}`)
  assert.ok(!isBound(deleted), out)
  for (const path of [stranger, named, runs])
    assert.ok(existsSync(join(path, 'volumes/kubernetes.io~empty-dir/m/file')), `${path} was touched:\n${out}`)
  assert.match(out, new RegExp(`kept +${stranger}: ${stranger}/backup is no mount that a node makes`))
  assert.match(out, new RegExp(`kept +${named}: its name is not the uid of a pod`))
  assert.match(out, new RegExp(`kept +${runs}: a process of that pod still runs`))
  assert.ok(isBound(elsewhere) && isBound(used))
  assert.match((await fix(server)).out, /there are no orphans to remove/)
})

test('a volume without an object goes with --delete-data only, one with a claim never', options, async () => {
  await using server = await startServer()
  const socket = join(server.directory, 'node/plugins', driver, 'csi.sock')
  await until('the driver listens', () => existsSync(socket))
  const made = await server.hawser('volume', 'create', 'kept', '--size', '16Mi')
  assert.equal(made.code, 0, made.err)
  const request = {
    name: `pvc-${randomUUID()}`,
    capacityRange: { requiredBytes: String(16 << 20) },
    volumeCapabilities: [{ mount: { fsType: 'ext4' }, accessMode: { mode: 'SINGLE_NODE_WRITER' } }],
  }
  const created = await server.hawser('driver', 'rpc', socket, 'Controller/CreateVolume', JSON.stringify(request))
  assert.equal(created.code, 0, created.err)
  const { volumeId } = (JSON.parse(created.out) as { volume: { volumeId: string } }).volume
  const volumes = () => readdirSync(join(server.directory, 'volumes/volumes'))
  assert.match((await fix(server)).out, new RegExp(`kept +\\S+/${volumeId}: it may hold data that was kept on purpose`))
  assert.ok(volumes().includes(volumeId))
  const { out } = await fix(server, '--delete-data')
  assert.match(out, new RegExp(`done +delete volume ${volumeId} and its data`))
  assert.ok(!volumes().includes(volumeId))
  const { status } = JSON.parse((await server.hawser('get', 'pvc/kept', '-o', 'json')).out) as {
    status: { phase: string }
  }
  // A claim that waits for its first pod has no volume yet; one that is bound keeps it.
  assert.equal(volumes().length, status.phase === 'Bound' ? 1 : 0)
  assert.deepEqual(loopsBelow(server.directory), [])
})

test('a directory that the server does not belong to is left alone', options, async () => {
  await using server = await startServer()
  await using other = await startServer()
  const orphan = podDirectory(other, randomUUID())
  using _cleanup = {
    [Symbol.dispose]() {
      for (const path of mountsBelow(join(other.directory, 'node/pods'))) spawnSync('umount', [path])
    },
  }
  const { out } = await server.hawser(
    ...['doctor', '--fix', '--yes', '--older-than', '0.001'],
    ...['--data-dir', other.directory, '--kubeconfig', server.kubeconfig],
  )
  assert.match(out, /kept +\S+: the server that answers is of another cluster than this directory/)
  assert.ok(existsSync(join(orphan, 'volumes/kubernetes.io~empty-dir/m/file')))
})
