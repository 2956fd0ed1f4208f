// Does the first minute work, and is everything gone afterwards, also when the user has had enough of it?
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { hawser, isRoot, spawnHawser } from '../kit/command-line.ts'
import { launcher } from '../kit/server-process.ts'

/** What a demo could leave: directories, mounts, loop devices. */
function traces(): string[] {
  const directories = readdirSync(tmpdir()).filter((name) => name.startsWith('hawser-demo-'))
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').match(/\S*hawser-demo-\S*/g) ?? []
  const loops = readdirSync('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .filter((name) => {
      try {
        return readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').includes('hawser-demo-')
      } catch {
        return false
      }
    })
  return [...directories, ...mounts, ...loops]
}

test('the whole story is told in under a minute, and nothing stays', { skip: !isRoot && 'needs root' }, () => {
  const start = performance.now()
  const { code, out, err } = spawnHawser(['demo'])
  assert.equal(code, 0, out + err)
  assert.ok(performance.now() - start < 60_000)
  for (const phase of [
    'start',
    'provision',
    'bind',
    'place',
    'attach',
    'stage',
    'publish',
    'run',
    'unmount',
    'grow',
    'snapshot',
    'delete',
  ])
    assert.match(out, new RegExp(`^  ${phase} +[\\d.]+ (ms|s) `, 'm'), phase)
  assert.equal(out.match(/the same/g)?.length, 2)
  assert.match(out, /volume mounts: 0, loop devices: 0, image files: 0/)
  assert.deepEqual(traces(), [])
})

test('interrupted in the middle it cleans up all the same', { skip: !isRoot && 'needs root' }, async () => {
  const child = spawn(launcher, ['demo'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  child.stdout.on('data', (piece: Buffer) => {
    const before = text
    text += piece.toString()
    if (!before.includes('2. the pod') && text.includes('2. the pod')) child.kill('SIGINT')
  })
  child.stderr.on('data', (piece: Buffer) => (text += piece.toString()))
  const [code] = (await once(child, 'close')) as [number]
  assert.equal(code, 1, text)
  assert.match(text, /the demo failed: interrupted/)
  assert.deepEqual(traces(), [])
})

test('on models it needs nothing', async () => {
  const { code, out, err } = await hawser(['demo', '--model'])
  assert.equal(code, 0, out + err)
  assert.match(out, /bind +[\d.]+ (ms|s) +claim data ↔ volume by-hand/)
  for (const step of ['provision', 'attach', 'mount', 'run', 'grow', 'unmount', 'delete'])
    assert.match(out, new RegExp(`^  ${step} +[\\d.]+ (ms|s) `, 'm'), step)
  assert.match(out, /mounts on the model hosts: 0; broken rules: 0/)
  assert.match(out, /no rule broken, nothing left attached/)
})
