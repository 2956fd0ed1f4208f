// Is an object that lacks almost everything refused or stored, and never a failure of the server? By create and by apply, every kind,
// with each member that may hold others left out or empty.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '../../src/api/kinds.ts'
import type { KindInfo } from '../../src/api/kinds.ts'
import { jsonFields, messageSchema } from '../../src/api/schema/schema.ts'
import { makeServer } from '../kit/api-server.ts'

/** `{}`, then each member that is a struct, empty or with the structs in it, one at a time. */
function shapes(message: string, depth: number): readonly object[] {
  if (depth === 0) return [{}]
  const members = [...jsonFields(message).values()].filter(
    ({ type, name, shape }) =>
      shape === 'one' &&
      name !== 'metadata' &&
      messageSchema(type)?.scalar === undefined &&
      messageSchema(type) !== undefined,
  )
  return [{}, ...members.flatMap(({ name, type }) => shapes(type, depth - 1).map((inner) => ({ [name]: inner })))]
}

for (const info of Object.values(kinds) as KindInfo[])
  test(`${info.kind}: what lacks members is no internal error`, async () => {
    await using server = await makeServer()
    const group = info.group === '' ? '/api/v1' : `/apis/${info.apiVersion}`
    const path = `${group}${info.namespaced ? '/namespaces/default' : ''}/${info.plural}`
    const failures: string[] = []
    for (const [index, shape] of shapes(info.message, 3).entries()) {
      const object = { apiVersion: info.apiVersion, kind: info.kind, metadata: { name: `x${index}` }, ...shape }
      const answers = [
        await server.post(path, object),
        await server.patch(`${path}/y${index}?fieldManager=m`, 'apply', { ...object, metadata: { name: `y${index}` } }),
      ]
      for (const { code, body } of answers)
        if (code >= 500) failures.push(`${JSON.stringify(shape)}: ${code} ${JSON.stringify(body)}`)
    }
    assert.deepEqual(failures, [])
  })
