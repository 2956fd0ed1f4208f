// What may be shown of a request? Everything but its secrets.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { printable } from './channel.ts'
import { CreateVolumeRequestSchema, NodeStageVolumeRequestSchema } from './proto/csi_pb.ts'

test('SIDE-5: secret fields are cut from every message that has them', () => {
  const create1 = create(CreateVolumeRequestSchema, {
    name: 'v',
    secrets: { password: 'hunter2' },
    capacityRange: { requiredBytes: 1n },
  })
  const shown = printable(CreateVolumeRequestSchema, create1)
  assert.equal(shown['secrets'], '[secret]')
  assert.equal(shown['name'], 'v')
  assert.ok(
    !JSON.stringify(shown, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value)).includes(
      'hunter2',
    ),
  )
  const stage = create(NodeStageVolumeRequestSchema, { secrets: { a: 'hunter2' } })
  assert.equal(printable(NodeStageVolumeRequestSchema, stage)['secrets'], '[secret]')
})
