import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod } from '../../api/generated/types.ts'
import type { Effect } from '../../volume/effect.ts'
import { VolumeError } from '../../volume/effect.ts'
import type { ActualVolume } from '../volumes/actual.ts'
import type { DeviceRecord } from '../volumes/device-records.ts'
import { ownershipOf, recorded } from './steps.ts'

const as = (name: string, runAsUser?: number): Container => ({
  name,
  ...(runAsUser === undefined ? {} : { securityContext: { runAsUser } }),
})
const user = (containers: Container[], podUser?: number, initContainers: Container[] = []) => {
  const securityContext = podUser === undefined ? {} : { securityContext: { runAsUser: podUser } }
  const pod: Pod = { metadata: { name: 'p' }, spec: { containers, initContainers, ...securityContext } }
  return ownershipOf(pod).fsUser
}

test('tokens belong to the one user that all containers run as, or to nobody (FSG-6)', () => {
  assert.equal(user([as('a', 7), as('b', 7)]), 7)
  assert.equal(user([as('a'), as('b')], 7), 7)
  assert.equal(user([as('a', 8)], 7), 8)
  assert.equal(user([as('a', 7), as('b', 8)]), undefined)
  assert.equal(user([as('a', 7), as('b')]), undefined)
  assert.equal(user([as('a', 7)], undefined, [as('i', 8)]), undefined)
  assert.equal(user([as('a')]), undefined)
})

/** Is the device still on record after a call that failed with this effect? */
async function keepsRecord(effect: Effect, device: Partial<ActualVolume['device']> | undefined): Promise<boolean> {
  const saved = new Set<string>()
  const devices = {
    save: async ({ volume }: DeviceRecord) => void saved.add(volume),
    drop: async (volume: string) => void saved.delete(volume),
    list: async () => [],
  }
  const record = { volume: 'p/v' } as unknown as DeviceRecord // nobody reads the rest
  const actual = device === undefined ? undefined : ({ device } as unknown as ActualVolume)
  const call = async () => {
    assert.ok(saved.has('p/v'), 'on record before the call')
    throw new VolumeError('Unexpected', 'refused', { effect })
  }
  await assert.rejects(recorded({ devices }, record, actual, call, new AbortController().signal), /refused/)
  return saved.has('p/v')
}

test('a device stays on record unless certainly nothing was made (WA-9)', async () => {
  const found = { presence: 'uncertain', foundOnDisk: true } as const
  const table: readonly (readonly [Effect, Partial<ActualVolume['device']> | undefined, boolean])[] = [
    ['unknown', undefined, true],
    ['none', undefined, false],
    ['untried', undefined, false],
    ['unknown', { presence: 'present' }, true],
    ['untried', { presence: 'present' }, true],
    ['none', { presence: 'present' }, false],
    ['unknown', { presence: 'uncertain' }, true],
    ['untried', { presence: 'uncertain' }, true],
    ['none', found, true],
    ['unknown', found, true],
  ]
  for (const [effect, device, kept] of table)
    assert.equal(await keepsRecord(effect, device), kept, `${effect} ${JSON.stringify(device)}`)
})
