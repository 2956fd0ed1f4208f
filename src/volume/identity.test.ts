// Names and keys: rules ID-1 … ID-4, EXEC-1 … EXEC-8.
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { PluginName, PodUid, UniqueVolumeName } from '../api/names.ts'
import { attachmentKey, mountKey, podVolumeName, sharedVolumeName, splitVolumeName } from './identity.ts'

const csi = 'kubernetes.io/csi' as PluginName
const pod = 'uid-1' as PodUid

test('plugin and volume name, split at the first two slashes only (ID-1, PLUG-16)', () => {
  const name = sharedVolumeName(csi, 'driver^a/b/c')
  assert.equal(name, 'kubernetes.io/csi/driver^a/b/c')
  assert.deepEqual(splitVolumeName(name), { plugin: csi, volumeName: 'driver^a/b/c' })
})

test('fewer than three parts is an error in the upstream wording (ID-1)', () => {
  for (const bad of ['', 'a', 'a/b']) {
    assert.throws(() => splitVolumeName(bad as UniqueVolumeName), {
      message: `cannot split volume unique name ${bad} to plugin/volume components`,
    })
  }
})

test('a volume of one pod carries the pod uid (ID-2, ID-3, PLUG-16)', () => {
  assert.equal(podVolumeName(csi, pod, 'data'), 'kubernetes.io/csi/uid-1-data')
})

test('keys (EXEC-1, EXEC-2, EXEC-5 … EXEC-8)', () => {
  const volume = 'p/q/v' as UniqueVolumeName
  assert.deepEqual(attachmentKey(volume, 'n', true), [volume, 'n'])
  assert.deepEqual(attachmentKey(volume, 'n', false), [volume])
  assert.deepEqual(mountKey(volume, pod, true), [volume])
  assert.deepEqual(mountKey(volume, pod, false), [volume, pod])
})

test('property: splitting undoes joining', () => {
  const part = fc.stringMatching(/^[a-z0-9.-]{1,20}$/)
  fc.assert(
    fc.property(part, part, fc.string({ minLength: 1 }), (domain, local, volumeName) => {
      const plugin = `${domain}/${local}` as PluginName
      assert.deepEqual(splitVolumeName(sharedVolumeName(plugin, volumeName)), { plugin, volumeName })
    }),
  )
})
