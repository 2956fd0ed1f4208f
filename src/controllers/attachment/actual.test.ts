import assert from 'node:assert/strict'
import test from 'node:test'
import { nodeName, uniqueVolumeName } from '../../api/names.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualEvent, ActualVolume } from './actual.ts'
import { presenceOn, reduceActual } from './actual.ts'

const volume = uniqueVolumeName('kubernetes.io/csi/driver^handle')
const node = nodeName('a')
const other = nodeName('b')
const spec = { name: 'pv' } as VolumeSpec

type Loose<E> = E extends ActualEvent ? Omit<E, 'volume' | 'node'> & { readonly node?: typeof node } : never

function after(...events: readonly Loose<ActualEvent>[]): ActualVolume | undefined {
  let item: ActualVolume | undefined
  for (const event of events) item = reduceActual(item, { node, ...event, volume } as ActualEvent)
  return item
}

const attached = { kind: 'attached', spec, devicePath: '/dev/x', nodeVersion: 1 } as const
const attachFailed = { kind: 'attachFailed', spec } as const
const found = { kind: 'foundInNodeStatus', devicePath: '/dev/y', nodeVersion: -1 } as const

test('ADA-2 the state machine of a volume on a node, every transition', () => {
  const table: readonly [
    name: string,
    events: Loose<ActualEvent>[],
    presence: string,
    reported: boolean | undefined,
  ][] = [
    ['ATT-4 absent, attach ok', [attached], 'attached', true],
    ['ATT-3 absent, attach error', [attachFailed], 'uncertain', false],
    ['ATT-4 uncertain, attach ok', [attachFailed, attached], 'attached', true],
    ['ATT-3 uncertain, attach error', [attachFailed, attachFailed], 'uncertain', false],
    ['ADR-2 attached, detach begins', [attached, { kind: 'reportWithdrawn' }], 'attached', false],
    ['DET-7 attached, detach ok', [attached, { kind: 'reportWithdrawn' }, { kind: 'detached' }], 'absent', undefined],
    ['DET-7 uncertain, detach ok', [attachFailed, { kind: 'detached' }], 'absent', undefined],
    [
      'DET-6 attached, detach error',
      [attached, { kind: 'reportWithdrawn' }, { kind: 'detachFailed' }],
      'uncertain',
      false,
    ],
    ['DET-6 uncertain, detach error', [attachFailed, { kind: 'detachFailed' }], 'uncertain', false],
    ['VVA-3 attached, found missing', [attached, { kind: 'foundNotAttached' }], 'absent', undefined],
    ['AD-3 attachment found at start', [{ kind: 'foundAttachment', spec }], 'uncertain', false],
    ['AD-2 listed by the node at start', [found], 'attached', true],
    ['AD-3 after AD-2', [found, { kind: 'foundAttachment', spec }], 'attached', true],
    ['ADA-4 ERR-6 a certain attachment stays certain', [attached, attachFailed], 'attached', true],
    ['NSP-7 only a fresh attach reports again', [attached, { kind: 'detachFailed' }, attached], 'attached', true],
  ]
  for (const [name, events, presence, reported] of table) {
    const item = after(...events)
    assert.equal(presenceOn(item, node), presence, name)
    assert.equal(item?.nodes.get(node)?.reported, reported, name)
  }
})

test('T-17 DES-8: a failed write puts the volume back into the report, but only what is certainly attached', () => {
  const certain = after(attached, { kind: 'reportWithdrawn' }, { kind: 'reportRestored' })
  assert.equal(certain?.nodes.get(node)?.reported, true)
  const doubtful = after(attachFailed, { kind: 'reportRestored' })
  assert.equal(doubtful?.nodes.get(node)?.reported, false)
})

test('ADA-6 T-29: what was detached meanwhile is not reported again', () => {
  assert.equal(
    after(attached, { kind: 'reportWithdrawn' }, { kind: 'detached' }, { kind: 'reportRestored' }),
    undefined,
  )
})

test('ADA-7 T-28: the first wish to detach stamps the time, later ones keep it, wanting it again clears it', () => {
  const stamped = after(attached, { kind: 'detachWanted', at: 5 }, { kind: 'detachWanted', at: 9 })
  assert.equal(stamped?.nodes.get(node)?.detachWantedSince, 5)
  const kept = after(attached, { kind: 'detachWanted', at: 5 }, { kind: 'detachFailed' }, attachFailed)
  assert.equal(kept?.nodes.get(node)?.detachWantedSince, 5)
  const cleared = after(attached, { kind: 'detachWanted', at: 5 }, { kind: 'detachUnwanted' })
  assert.equal(cleared?.nodes.get(node)?.detachWantedSince, undefined)
})

test('ADA-1 ADA-3 W-20: each node has its own device path', () => {
  const item = after(
    attached,
    { ...attached, node: other, devicePath: '/dev/z' },
    { kind: 'detachFailed', node: other },
  )
  assert.equal(item?.nodes.get(node)?.devicePath, '/dev/x')
  assert.equal(item?.nodes.get(other)?.devicePath, '')
})

test('AD-4: a volume found in node status is only a name until a spec explains it', () => {
  assert.deepEqual(after(found)?.identity, { kind: 'seen' })
  assert.deepEqual(after(found, { kind: 'specLearned', spec })?.identity, { kind: 'known', spec })
})

test('ADA-5: the last node takes the record with it; events for unknown volumes change nothing', () => {
  assert.equal(after(attached, { ...attached, node: other }, { kind: 'detached' })?.nodes.size, 1)
  assert.equal(after({ kind: 'detached' }), undefined)
  assert.equal(after({ kind: 'detachWanted', at: 1 }), undefined)
})

test('an event that changes nothing answers the same record', () => {
  const item = after(attached, { kind: 'reportWithdrawn' })
  for (const kind of ['reportWithdrawn', 'detachUnwanted'] as const) {
    assert.equal(reduceActual(item, { kind, volume, node }), item)
  }
})
