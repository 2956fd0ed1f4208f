// Is a read-only raw volume really read-only? A real container writes to it, or tries to. Needs root.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createDisk, openAgentFixture, podOn, until } from '../kit/agent-fixture.ts'
import { loopsBelow, needsRoot as skip } from '../kit/machine.ts'

const script = `
dd if=/dev/raw of=/dev/null bs=4096 count=1 2>/dev/null && echo read
printf x | dd of=/dev/raw bs=1 conv=notrunc 2>/dev/null && echo written
blockdev --getsize64 /dev/raw
`

test('a container cannot write to a raw volume that its pod asked for read-only (BLOCK-8)', { skip }, async () => {
  await using bench = await openAgentFixture()
  await bench.startAgent()
  const device = await createDisk(bench, 'disk', 'Block')
  for (const readOnly of [false, true]) {
    const name = readOnly ? 'reader' : 'writer'
    const made = await bench.client.create(
      'Pod',
      podOn(name, {
        containers: [
          {
            name: 'c',
            image: 'i',
            command: ['sh', '-c', script],
            volumeDevices: [{ name: 'd', devicePath: '/dev/raw' }],
          },
        ],
        volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'disk', ...(readOnly ? { readOnly } : {}) } }],
      }),
    )
    await until('it has ended', async () => (await bench.phaseOf(name)) === 'Succeeded')
    assert.deepEqual(
      said(bench.base, made.metadata.uid!),
      readOnly ? ['read', '16777216'] : ['read', 'written', '16777216'],
    )
    await bench.remove(name)
    await bench.allGone()
    assert.deepEqual(loopsBelow(bench.root), [])
  }
  assert.equal(readFileSync(device).subarray(0, 2).toString('latin1'), 'x\u0000')
})

function said(base: string, uid: string): string[] {
  const logs = join(base, 'logs/n1/pods')
  const [folder = ''] = readdirSync(logs).filter((name) => name.includes(uid))
  return readFileSync(join(logs, folder, 'c/0.log'), 'utf8')
    .trim()
    .split('\n')
}
