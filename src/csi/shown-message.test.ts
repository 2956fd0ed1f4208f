// What may be shown of a message? Everything but its secrets.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, getOption, hasOption, toBinary } from '@bufbuild/protobuf'
import type { DescMessage } from '@bufbuild/protobuf'
import { CreateVolumeRequestSchema, csi_secret } from './generated/csi_pb.ts'
import { csiServices } from './service.ts'
import { shownMessage } from './shown-message.ts'

test('the names of secrets are shown, their values are not, in every request (SIDE-5)', () => {
  const requests = csiServices.flatMap(({ methods }) => methods.map(({ input }) => input as DescMessage))
  const withSecrets = requests.flatMap((schema) =>
    schema.fields
      .filter((field) => hasOption(field, csi_secret) && getOption(field, csi_secret))
      .map((field) => ({ schema, field })),
  )
  assert.ok(withSecrets.length >= 10)
  for (const { schema, field } of withSecrets) {
    const bytes = toBinary(schema, create(schema, { [field.localName]: { password: 'hunter2' } }))
    assert.deepEqual(shownMessage(schema, bytes), { [field.jsonName]: { password: '[secret]' } }, schema.name)
  }
})

test('the rest of a message is shown as protobuf JSON', () => {
  const request = create(CreateVolumeRequestSchema, { name: 'v', capacityRange: { requiredBytes: 1n } })
  const bytes = toBinary(CreateVolumeRequestSchema, request)
  assert.deepEqual(shownMessage(CreateVolumeRequestSchema, bytes), { name: 'v', capacityRange: { requiredBytes: '1' } })
})

test('bytes that are no message are told as such', () => {
  assert.equal(
    shownMessage(CreateVolumeRequestSchema, new Uint8Array([255, 255])),
    '[2 bytes that are no CreateVolumeRequest]',
  )
})
