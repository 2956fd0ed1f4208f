import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod } from '../../api/generated/types.ts'
import { ownershipOf } from './steps.ts'

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
