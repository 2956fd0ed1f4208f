// Does the built-in driver promise only what it can keep? Volumes are counted against the disk below them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Capability } from '../../src/csi/values.ts'
import { driverData, startDriverMachine } from '../kit/local-driver.ts'
import type { DriverMachine } from '../kit/local-driver.ts'

const never = new AbortController().signal
const gi = 1n << 30n
const filesystem: Capability = {
  access: { kind: 'mount', fsType: 'ext4', mountFlags: [] },
  mode: 'SINGLE_NODE_WRITER',
}

/** A disk of 11 GiB with the reserve of 1 GiB: 10 GiB for volumes. */
async function startSmallMachine(options: Parameters<typeof startDriverMachine>[0] = {}): Promise<DriverMachine> {
  const machine = await startDriverMachine(options)
  machine.host.rootFilesystem.capacityBytes = 11n * gi + (1n << 20n) // and a little for directories
  machine.host.rootFilesystem.usedBytes = 0n
  return machine
}

const create = (machine: DriverMachine, name: string, requiredBytes: bigint, parameters = {}) =>
  machine.controller.createVolume({ name, requiredBytes, capabilities: [filesystem], parameters }, never)

const isRefused = (code: string, message: RegExp) => (error: { status?: string } & Error) => {
  assert.equal(error.status, code)
  assert.match(error.message, message)
  return true
}
const isExhausted = (message: RegExp) => isRefused('RESOURCE_EXHAUSTED', message)

test('thin volumes may promise twice the disk by default, and no more', async () => {
  const machine = await startSmallMachine()
  await create(machine, 'a', 15n * gi)
  await assert.rejects(create(machine, 'b', 6n * gi), isExhausted(/6Gi .*requested, 5Gi left .*overcommit 2\b/))
  assert.deepEqual((await machine.host.files.readDir(`${driverData}/volumes`, never)).length, 1)
  await create(machine, 'b', 5n * gi)
  assert.equal((await machine.controller.capacity({ parameters: {} }, never)).availableBytes < 1n << 21n, true)
})

test('the ratio is chosen; growing counts too, and what is deleted is free again', async () => {
  const machine = await startSmallMachine({ overcommit: 1 })
  const { volumeId } = await create(machine, 'a', 6n * gi)
  await assert.rejects(create(machine, 'b', 5n * gi), isExhausted(/4Gi left/))
  const grow = (sizeBytes: bigint) => machine.controller.expand({ volumeId, sizeBytes, capability: filesystem }, never)
  // A growth that is refused for good may be taken back: the claim asks for less.
  await assert.rejects(grow(11n * gi), isRefused('OUT_OF_RANGE', /5Gi .*more requested, 4Gi left/))
  await grow(10n * gi)
  await machine.controller.deleteVolume(volumeId, {}, never)
  await create(machine, 'b', 5n * gi)
})

test('volumes that are made at the same time are counted one after the other', async () => {
  const machine = await startSmallMachine({ overcommit: 1 })
  const made = await Promise.allSettled(Array.from({ length: 12 }, (_, at) => create(machine, `v${at}`, gi)))
  assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 10)
})

test('a thick volume takes its space at once, and never more than is free', async () => {
  const machine = await startSmallMachine()
  machine.host.rootFilesystem.usedBytes = 4n * gi
  const allocated: (readonly string[])[] = []
  machine.host.programs.set('fallocate', ({ argv }) => {
    allocated.push(argv)
    return { exitCode: 0, stdout: '', stderr: '' }
  })
  const thick = { provisioning: 'thick' }
  assert.equal((await machine.controller.capacity({ parameters: thick }, never)).availableBytes >> 30n, 6n)
  await assert.rejects(create(machine, 'a', 7n * gi, thick), isExhausted(/6Gi left/))
  await create(machine, 'a', 6n * gi, thick)
  assert.deepEqual(
    allocated.map((argv) => argv.slice(0, 3)),
    [['fallocate', '--length', String(6n * gi)]],
  )
})
