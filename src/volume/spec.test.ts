// One tagged union from two wire shapes: ID-4, ID-8, PLUG-13, PLUG-17, PLUG-18.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { PersistentVolume } from '../api/generated/types.ts'
import { jsonFields } from '../api/schema/schema.ts'
import { hasSource, inlineSpec, specOfPersistentVolume, specOfPodVolume } from './spec.ts'

const volume = (spec: NonNullable<PersistentVolume['spec']>): PersistentVolume => ({ metadata: { name: 'pv1' }, spec })

test('an inline volume is named by the pod and carries its own read-only flag (ID-4, PLUG-17)', () => {
  const spec = specOfPodVolume({ name: 'data', nfs: { server: 's', path: '/p', readOnly: true } })
  assert.deepEqual(spec, {
    name: 'data',
    from: 'pod',
    mode: 'Filesystem',
    readOnly: true,
    source: { kind: 'nfs', value: { server: 's', path: '/p', readOnly: true } },
  })
})

test('a persistent volume is read-only only by the claim reference (PLUG-13)', () => {
  const pv = volume({ volumeMode: 'Block', csi: { driver: 'd', volumeHandle: 'h', readOnly: true } })
  const spec = specOfPersistentVolume(pv, false)
  assert.deepEqual([spec.name, spec.mode, spec.readOnly, spec.persistentVolume], ['pv1', 'Block', false, pv])
  assert.equal(specOfPersistentVolume(pv, true).readOnly, true)
  assert.equal(hasSource(spec, 'csi') && spec.source.value.driver, 'd')
})

test('a persistent volume without a mode is an error (ID-8, PLUG-18)', () => {
  const pv = volume({ nfs: { server: 's', path: '/p' } })
  assert.throws(() => specOfPersistentVolume(pv, false), { message: 'cannot get volumeMode for volume: pv1' })
})

test('an unknown source gets a clear answer', () => {
  assert.throws(() => specOfPodVolume({ name: 'data' }), {
    code: 'NoPluginMatched',
    message: 'failed to get Plugin from volumeSpec for volume "data" err=no volume plugin matched',
  })
  assert.throws(() => specOfPersistentVolume(volume({ volumeMode: 'Filesystem' }), false), { code: 'NoPluginMatched' })
})

test('every source that the API has is understood, also one that no plugin serves', () => {
  const inPods = [...jsonFields('core.VolumeSource').keys()]
  const unresolved = ['ephemeral', 'persistentVolumeClaim']
  for (const name of inPods.filter((each) => !unresolved.includes(each)))
    assert.equal(specOfPodVolume({ name: 'data', [name]: {} }).source.kind, name)
  for (const name of unresolved) assert.equal(inlineSpec({ name: 'data', [name]: {} }), undefined)
  for (const name of jsonFields('core.PersistentVolumeSource').keys())
    assert.equal(specOfPersistentVolume(volume({ volumeMode: 'Filesystem', [name]: {} }), false).source.kind, name)
})
