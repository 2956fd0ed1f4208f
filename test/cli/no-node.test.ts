// Does a server without a node serve agents on its own: default class, claims, snapshots? Real mounts: needs root.
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { isRoot, spawnHawser, startServer } from '../kit/command-line.ts'
import { until } from '../kit/machine.ts'
import { speaking } from '../kit/speaking.ts'

const own = Object.values(networkInterfaces())
  .flatMap((entries) => entries ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address
const needs = { skip: (!isRoot && 'needs root') || (own === undefined && 'this machine has no address but loopback') }

test('a server with --no-node makes, snapshots and deletes the volumes of an agent', needs, async () => {
  await using server = await startServer('--no-node', '--listen', `${own}:0`)
  await using stack = new AsyncDisposableStack()
  const data = mkdtempSync(join(tmpdir(), 'hawser-no-node-'))
  stack.defer(async () => void (await removeEverything(data)))
  const succeed = async (...args: readonly string[]) => {
    const { code, out, err } = await server.hawser(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${out}${err}`)
    return out
  }
  const [, token = '', url = '', hash = ''] =
    /^HAWSER_JOIN_TOKEN=(\S+) hawser agent --join (\S+) --ca-hash (\S+)$/.exec(
      (await succeed('token', 'join-command')).trim(),
    ) ?? []
  const joining = ['agent', '--join', url, '--ca-hash', hash, '--data-dir', data, '--node-name', 'worker']
  await using agent = speaking(joining, { HAWSER_JOIN_TOKEN: token })
  await agent.says(/^node worker is up$/m)
  assert.match(await succeed('get', 'nodes', '-o', 'name'), /^node\/worker\n$/)
  await succeed('volume', 'create', 'data', '--size', '32Mi', '--node', 'worker')
  await succeed('volume', 'snapshot', 'data')
  let seen = ''
  const look = async (...args: readonly string[]) => (seen = await succeed('get', ...args))
  const ready = () => look('volumesnapshots', '-o', 'json').then((text) => /"readyToUse": true/.test(text))
  await until(() => `the snapshot is ready; seen: ${seen}`, ready, 60_000)
  await succeed('delete', 'volumesnapshots', '--all', '--yes')
  await succeed('delete', 'pvc/data', '--yes')
  const gone = () => look('pv', '-o', 'name').then((text) => text.trim() === '')
  await until(() => `the volume is deleted; seen: ${seen}`, gone, 60_000)
  const both = spawnHawser(['up', '--no-node', '--extra-node', 'n2', '--data-dir', join(data, 'x')])
  assert.match(both.err, /--extra-node and --no-node contradict each other/)
})
