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

test('the state machine of a volume on a node, every transition (ADA-2, TA-26)', () => {
  const table: readonly [
    name: string,
    events: Loose<ActualEvent>[],
    presence: string,
    reported: boolean | undefined,
  ][] = [
    ['absent, attach ok (ATT-4)', [attached], 'attached', true],
    ['absent, attach error (ATT-3)', [attachFailed], 'uncertain', false],
    ['uncertain, attach ok (ATT-4)', [attachFailed, attached], 'attached', true],
    ['uncertain, attach error (ATT-3)', [attachFailed, attachFailed], 'uncertain', false],
    ['attached, detach begins (ADR-2)', [attached, { kind: 'reportWithdrawn' }], 'attached', false],
    ['attached, detach ok (DET-7)', [attached, { kind: 'reportWithdrawn' }, { kind: 'detached' }], 'absent', undefined],
    ['uncertain, detach ok (DET-7)', [attachFailed, { kind: 'detached' }], 'absent', undefined],
    [
      'attached, detach error (DET-6)',
      [attached, { kind: 'reportWithdrawn' }, { kind: 'detachFailed' }],
      'uncertain',
      false,
    ],
    ['uncertain, detach error (DET-6)', [attachFailed, { kind: 'detachFailed' }], 'uncertain', false],
    ['attached, found missing (VVA-3)', [attached, { kind: 'foundNotAttached' }], 'absent', undefined],
    ['attachment found at start (AD-3)', [{ kind: 'foundAttachment', spec }], 'uncertain', false],
    ['listed by the node at start (AD-2)', [found], 'attached', true],
    ['after AD-2 (AD-3)', [found, { kind: 'foundAttachment', spec }], 'attached', true],
    ['a certain attachment stays certain (ADA-4, ERR-6)', [attached, attachFailed], 'attached', true],
    ['only a fresh attach reports again (NSP-7)', [attached, { kind: 'detachFailed' }, attached], 'attached', true],
  ]
  for (const [name, events, presence, reported] of table) {
    const item = after(...events)
    assert.equal(presenceOn(item, node), presence, name)
    assert.equal(item?.nodes.get(node)?.reported, reported, name)
  }
})

test('a failed write puts the volume back into the report, but only what is certainly attached (TA-17, DES-8)', () => {
  const certain = after(attached, { kind: 'reportWithdrawn' }, { kind: 'reportRestored' })
  assert.equal(certain?.nodes.get(node)?.reported, true)
  const doubtful = after(attachFailed, { kind: 'reportRestored' })
  assert.equal(doubtful?.nodes.get(node)?.reported, false)
})

test('what was detached meanwhile is not reported again (ADA-6, TA-29)', () => {
  assert.equal(
    after(attached, { kind: 'reportWithdrawn' }, { kind: 'detached' }, { kind: 'reportRestored' }),
    undefined,
  )
})

test('the first wish to detach stamps the time, later ones keep it, wanting it again clears it (ADA-7, TA-28)', () => {
  const stamped = after(attached, { kind: 'detachWanted', at: 5 }, { kind: 'detachWanted', at: 9 })
  assert.equal(stamped?.nodes.get(node)?.detachWantedSince, 5)
  const kept = after(attached, { kind: 'detachWanted', at: 5 }, { kind: 'detachFailed' }, attachFailed)
  assert.equal(kept?.nodes.get(node)?.detachWantedSince, 5)
  const cleared = after(attached, { kind: 'detachWanted', at: 5 }, { kind: 'detachUnwanted' })
  assert.equal(cleared?.nodes.get(node)?.detachWantedSince, undefined)
})

test('each node has its own device path (ADA-1, ADA-3, WA-20)', () => {
  const item = after(
    attached,
    { ...attached, node: other, devicePath: '/dev/z' },
    { kind: 'detachFailed', node: other },
  )
  assert.equal(item?.nodes.get(node)?.devicePath, '/dev/x')
  assert.equal(item?.nodes.get(other)?.devicePath, '')
})

test('a volume found in node status is only a name until a spec explains it (AD-4)', () => {
  assert.deepEqual(after(found)?.identity, { kind: 'seen' })
  assert.deepEqual(after(found, { kind: 'specLearned', spec })?.identity, { kind: 'known', spec })
})

test('the last node takes the record with it; events for unknown volumes change nothing (ADA-5)', () => {
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
