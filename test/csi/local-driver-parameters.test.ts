// Which class parameters does the built-in driver take? Those it knows; any other is refused before anything is made.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Capability } from '../../src/csi/values.ts'
import { startDriverMachine } from '../kit/local-driver.ts'

const never = new AbortController().signal
const filesystem: Capability = {
  access: { kind: 'mount', fsType: 'ext4', mountFlags: [] },
  mode: 'SINGLE_NODE_WRITER',
}

const refusals: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
  ['an unknown parameter', { tier: 'fast' }, /class parameter "tier" is not known .*; known: provisioning/],
  ['a misspelt parameter', { provisionning: 'thick' }, /"provisionning" is not known .*did you mean provisioning\?/],
  ['a misspelt fsType', { fsTyp: 'xfs' }, /"fsTyp" is not known .*did you mean csi.storage.k8s.io\/fstype\?/],
  ['an unknown value', { provisioning: 'thik' }, /provisioning must be thin or thick, not "thik"/],
]

for (const [what, parameters, message] of refusals) {
  test(`${what} is refused with INVALID_ARGUMENT, and nothing is made`, async () => {
    const machine = await startDriverMachine()
    const request = { name: 'pvc-1', requiredBytes: 1n << 24n, capabilities: [filesystem], parameters }
    await assert.rejects(machine.controller.createVolume(request, never), (error: { status?: string } & Error) => {
      assert.equal(error.status, 'INVALID_ARGUMENT')
      assert.match(error.message, message)
      return true
    })
    assert.deepEqual(await machine.host.files.readDir('/var/driver/volumes', never), [])
  })
}

test('what the provisioner passes on is taken: filesystem, secrets, names of claim and volume', async () => {
  const machine = await startDriverMachine()
  const parameters = {
    fsType: 'ext4',
    csiProvisionerSecretName: 's',
    csiProvisionerSecretNamespace: 'n',
    'csi.storage.k8s.io/pvc/name': 'data',
    provisioning: 'thin',
  }
  const request = { name: 'pvc-1', requiredBytes: 1n << 24n, capabilities: [filesystem], parameters }
  assert.ok((await machine.controller.createVolume(request, never)).volumeId)
})
