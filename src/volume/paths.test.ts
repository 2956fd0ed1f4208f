// The on-disk layout, built and parsed: LAYOUT-1 … LAYOUT-6, and the inverse as a property.
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { PluginName, PodUid } from '../api/names.ts'
import {
  globalDevicePath,
  globalPluginPath,
  parsePodVolumePath,
  podDeviceDirectory,
  podPluginPath,
  podVolumePath,
  registrationDirectory,
  subPathTarget,
} from './paths.ts'

const [root, pod, nfs] = ['/r', 'u1' as PodUid, 'kubernetes.io/nfs' as PluginName]

test('the paths of the layout', () => {
  assert.deepEqual(
    {
      'LAYOUT-1': podVolumePath(root, pod, nfs, 'v'),
      'LAYOUT-2': podPluginPath(root, pod, nfs, 'v', 'ready'),
      'LAYOUT-3': podDeviceDirectory(root, pod, nfs),
      'LAYOUT-4': subPathTarget(root, pod, 'v', 'app', 2),
      'LAYOUT-5': globalPluginPath(root, nfs, 'mounts', 'v'),
      'LAYOUT-6': globalDevicePath(root, nfs, 'v'),
      'LAYOUT-7': registrationDirectory(root),
    },
    {
      'LAYOUT-1': '/r/pods/u1/volumes/kubernetes.io~nfs/v',
      'LAYOUT-2': '/r/pods/u1/plugins/kubernetes.io~nfs/v/ready',
      'LAYOUT-3': '/r/pods/u1/volumeDevices/kubernetes.io~nfs',
      'LAYOUT-4': '/r/pods/u1/volume-subpaths/v/app/2',
      'LAYOUT-5': '/r/plugins/kubernetes.io/nfs/mounts/v',
      'LAYOUT-6': '/r/plugins/kubernetes.io/nfs/volumeDevices/v',
      'LAYOUT-7': '/r/plugins_registry',
    },
  )
})

test('other paths are not volumes', () => {
  for (const path of [
    '/r',
    '/r/pods/u1',
    '/r/pods/u1/volumes/kubernetes.io~nfs',
    '/x/pods/u1/volumes/a~b/v',
    '/r/pods/u1/plugins/a~b/v',
    '/r/pods/u1/volumes/plain/v',
    '/r/pods/u1/volumes/a~b/v/deeper',
  ]) {
    assert.equal(parsePodVolumePath(root, path), undefined, path)
  }
})

test('property: parsing undoes building, for both modes', () => {
  const word = fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,10}[a-z0-9])?$/)
  fc.assert(
    fc.property(word, word, word, word, (uid, domain, local, volume) => {
      const plugin = `${domain}/${local}` as PluginName
      const at = { pod: uid as PodUid, plugin, volume }
      assert.deepEqual(parsePodVolumePath(root, podVolumePath(root, at.pod, plugin, volume)), {
        ...at,
        mode: 'Filesystem',
      })
      const link = `${podDeviceDirectory(root, at.pod, plugin)}/${volume}`
      assert.deepEqual(parsePodVolumePath(root, link), { ...at, mode: 'Block' })
    }),
  )
})
