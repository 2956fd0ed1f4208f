// When does a volume change its group, and how? FSG-1 … FSG-3, TP-14 and TP-16.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createModelHost } from './model/model-host.ts'
import { applyOwnership, groupMode } from './ownership.ts'

const { signal } = new AbortController()

async function volume(rootMode: number, rootGid: number) {
  const host = createModelHost({ clock: createVirtualClock() })
  await host.files.mkdir('/tmp/v', rootMode, signal)
  await host.files.lchown('/tmp/v', -1, rootGid, signal)
  await host.files.chmod('/tmp/v', rootMode, signal)
  await host.files.writeFile('/tmp/v/f', 'x', { mode: 0o600 }, signal)
  await host.files.lchown('/tmp/v/f', -1, 0, signal)
  const gid = async () => (await host.files.stat('/tmp/v/f', signal)).gid
  return { host, gid }
}

test('without a group nothing happens (FSG-1)', async () => {
  const { host, gid } = await volume(0o755, 0)
  assert.deepEqual(await applyOwnership(host.files, { root: '/tmp/v', gid: undefined, readOnly: false }, signal), {
    kind: 'notWanted',
    entries: 0,
    refused: 0,
  })
  assert.equal(await gid(), 0)
})

test('OnRootMismatch looks at group, mode and setgid of the root (FSG-1, TP-14)', async () => {
  const cases: readonly [number, number, boolean, 'skipped' | 'changed'][] = [
    [0o2770, 1000, false, 'skipped'],
    [0o2777, 1000, false, 'skipped'],
    [0o770, 1000, false, 'changed'],
    [0o2750, 1000, false, 'changed'],
    [0o2770, 1, false, 'changed'],
    [0o2550, 1000, true, 'skipped'],
    [0o2540, 1000, true, 'changed'],
  ]
  for (const [mode, rootGid, readOnly, kind] of cases) {
    const { host, gid } = await volume(mode, rootGid)
    const result = await applyOwnership(
      host.files,
      { root: '/tmp/v', gid: 1000, readOnly, policy: 'OnRootMismatch' },
      signal,
    )
    assert.equal(result.kind, kind, mode.toString(8))
    assert.equal(await gid(), kind === 'changed' ? 1000 : 0)
    const always = await applyOwnership(host.files, { root: '/tmp/v', gid: 1000, readOnly, policy: 'Always' }, signal)
    assert.equal(always.kind, 'changed')
  }
})

test('bits are added, never taken (FSG-3)', () => {
  assert.equal(groupMode(0o600, { directory: false, readOnly: false }), 0o660)
  assert.equal(groupMode(0o777, { directory: false, readOnly: true }), 0o777)
  assert.equal(groupMode(0o400, { directory: false, readOnly: true }), 0o440)
  assert.equal(groupMode(0o700, { directory: true, readOnly: false }), 0o2770)
  assert.equal(groupMode(0o1777, { directory: true, readOnly: true }), 0o3777)
})
