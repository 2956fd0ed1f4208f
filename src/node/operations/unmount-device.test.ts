import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkReferences } from './unmount-device.ts'

test('a device is in use by every mount of it outside its own place below plugins (MOUNT-18)', async () => {
  const path = '/var/lib/kubelet/plugins/kubernetes.io/csi/d/x/globalmount'
  const check = (...references: string[]) => checkReferences(path, async () => references)
  await check()
  await check('/host/var/lib/kubelet/plugins/kubernetes.io/csi/d/x/globalmount')
  await assert.rejects(check('/var/lib/kubelet/pods/u/volumes/v'), {
    message: `the device mount path "${path}" is still mounted by other references [/var/lib/kubelet/pods/u/volumes/v]`,
  })
  await assert.rejects(
    checkReferences('/mnt/disk', async () => ['/mnt/other']),
    /is still mounted by other references/,
  )
})
