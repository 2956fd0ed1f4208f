import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DescMethod } from '@bufbuild/protobuf'
import { CsiError } from '../csi/codes.ts'
import { Controller, GroupController, Identity, Node } from '../csi/generated/csi_pb.ts'
import { fenced } from './fenced-channel.ts'

test('a server that may have been replaced calls no controller of a driver, and still mounts on its own machine', async () => {
  const called: string[] = []
  let isActive = true
  const connection = fenced(
    () => ({
      transport: async (method: DescMethod) => {
        called.push(method.name)
        return new Uint8Array()
      },
      onLost: () => ({ [Symbol.dispose]() {} }),
      onReady: () => ({ [Symbol.dispose]() {} }),
      [Symbol.dispose]() {},
    }),
    () => {
      if (!isActive) throw new Error('its lease could not be renewed in time')
    },
  )('csi.sock')
  const { signal } = new AbortController()
  const call = (method: DescMethod) => connection.transport(method, new Uint8Array(), { signal })
  await call(Controller.method.deleteVolume)
  isActive = false
  for (const method of [Controller.method.deleteVolume, GroupController.method.deleteVolumeGroupSnapshot]) {
    await assert.rejects(call(method), (error: unknown) => {
      assert.ok(error instanceof CsiError)
      assert.deepEqual(
        [error.status, error.effect, error.details],
        ['UNAVAILABLE', 'untried', 'its lease could not be renewed in time'],
      )
      return true
    })
  }
  await call(Node.method.nodePublishVolume)
  await call(Identity.method.probe)
  assert.deepEqual(called, ['DeleteVolume', 'NodePublishVolume', 'Probe'])
})
