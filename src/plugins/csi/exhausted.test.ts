// Does an attachment's error mean that the node is full? Only in the words of a driver that keeps its limit up to date.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { VolumeAttachment } from '../../api/generated/types.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import { isExhausted } from './source.ts'

const signal = new AbortController().signal
const spec = specOfPersistentVolume(
  { metadata: { name: 'pv' }, spec: { volumeMode: 'Filesystem', csi: { driver: 'd', volumeHandle: 'h' } } },
  false,
)

async function answer(
  errorCode: number | undefined,
  period: number | undefined,
  { found = true, told = [] as string[] } = {},
): Promise<boolean> {
  const status = { attached: false, attachError: { message: 'no', ...(errorCode === undefined ? {} : { errorCode }) } }
  const csiDriver = { metadata: { name: 'd' }, spec: period ? { nodeAllocatableUpdatePeriodSeconds: period } : {} }
  const deps = {
    nodeName: 'n',
    drivers: { tellFull: (name: string) => told.push(name) },
    csiDrivers: { get: () => csiDriver },
    client: { get: async () => (found ? ({ status } as VolumeAttachment) : Promise.reject(new Error('not found'))) },
  }
  return await isExhausted(deps as never, spec, signal)
}

test('resource exhausted, from a driver that keeps its limit up to date (PLUG-4, VM-5)', async () => {
  const told: string[] = []
  assert.deepEqual(
    [
      await answer(8, 60, { told }),
      await answer(8, undefined),
      await answer(14, 60, { told }),
      await answer(undefined, 60),
    ],
    [true, false, false, false],
  )
  assert.deepEqual(told, ['d'], 'whoever keeps the limit hears of it')
  assert.equal(await answer(8, 60, { found: false }), false, 'an attachment that cannot be read says nothing')
})
