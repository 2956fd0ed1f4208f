// Acting as somebody else (`kubectl --as`): for administrators, in the words of Kubernetes; never ignored.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { User } from '../../src/apiserver/request/call.ts'
import { makeServer, paths } from '../kit/api-server.ts'

const reader: User = { name: 'rita', groups: ['hawser:read-only', 'system:authenticated'] }
const whoami = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const as = (name: string, more: Readonly<Record<string, string>> = {}) => ({
  headers: { 'impersonate-user': name, ...more },
})

test('an administrator who acts as somebody has the rights of that user and no others', async () => {
  await using server = await makeServer()
  const refused = await server.post(paths.configMaps, { metadata: { name: 'x' } }, as('bob'))
  assert.deepEqual(
    [refused.code, refused.body.message],
    [
      403,
      'configmaps is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "default"',
    ],
  )
  const group = as('bob', { 'impersonate-group': 'hawser:read-only' })
  assert.equal((await server.get(paths.volumes, group)).code, 200)
  assert.equal((await server.get(paths.secrets, group)).code, 403)
})

test('who am I tells the impersonated user, groups, uid and extra', async () => {
  await using server = await makeServer()
  const me = async (headers: Readonly<Record<string, string>>) => {
    const answer = await server.post(whoami, {}, { headers })
    assert.equal(answer.code, 201, answer.body.message)
    return answer.body.status.userInfo
  }
  assert.deepEqual(await me({ 'impersonate-user': 'bob' }), { username: 'bob', groups: ['system:authenticated'] })
  assert.deepEqual(
    await me({
      'impersonate-user': 'bob',
      'impersonate-group': 'dev, ops',
      'impersonate-uid': '42',
      'impersonate-extra-acme.com%2fteam': 'red, blue',
    }),
    {
      username: 'bob',
      uid: '42',
      groups: ['dev', 'ops', 'system:authenticated'],
      extra: { 'acme.com/team': ['red', 'blue'] },
    },
  )
  assert.deepEqual(await me({ 'impersonate-user': 'system:serviceaccount:default:robot' }), {
    username: 'system:serviceaccount:default:robot',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
  })
  assert.deepEqual(await me({ 'impersonate-user': 'system:anonymous' }), {
    username: 'system:anonymous',
    groups: ['system:unauthenticated'],
  })
})

test('nobody else may act as somebody, whatever header asks for it', async () => {
  await using server = await makeServer()
  const cases: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [
      { 'impersonate-user': 'bob' },
      'users "bob" is forbidden: User "rita" cannot impersonate resource "users" in API group "" at the cluster scope',
    ],
    [
      { 'impersonate-user': 'system:serviceaccount:default:robot' },
      'serviceaccounts "robot" is forbidden: User "rita" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "default"',
    ],
  ]
  for (const [headers, message] of cases) {
    const answer = await server.get(paths.volumes, { headers, user: reader })
    assert.deepEqual([answer.code, answer.body.message], [403, message])
  }
  assert.equal((await server.get('/readyz', { ...as('bob'), user: undefined })).code, 403)
  assert.equal((await server.get(paths.volumes, { ...as('bob'), user: undefined })).code, 401)
})

test('groups, uid or extra without a user are refused', async () => {
  await using server = await makeServer()
  for (const name of ['impersonate-group', 'impersonate-uid', 'impersonate-extra-team']) {
    const answer = await server.get(paths.volumes, { headers: { [name]: 'x' } })
    assert.equal(answer.code, 400, name)
    assert.match(answer.body.message, /without impersonating a user/)
  }
})

test('the audit line names who asked and as whom', async () => {
  await using server = await makeServer()
  await server.post(paths.configMaps, { metadata: { name: 'x' } }, as('bob', { 'impersonate-group': 'system:masters' }))
  await server.post(paths.configMaps, { metadata: { name: 'y' } }, { ...as('bob'), user: reader })
  await server.get(paths.volumes, as('bob', { 'impersonate-group': 'system:masters' }))
  await server.get(paths.volumes, { headers: { 'impersonate-group': 'system:masters' }, user: reader })
  await server.get(paths.volumes)
  const audits = server.lines.flatMap(({ fields }) => (fields['audit'] === undefined ? [] : [fields['audit']])) as {
    user: string
    impersonatedUser?: string
    code: number
  }[]
  assert.deepEqual(
    audits.map(({ user, impersonatedUser, code }) => ({ user, impersonatedUser, code })),
    [
      { user: 'admin', impersonatedUser: 'bob', code: 201 },
      { user: 'rita', impersonatedUser: 'bob', code: 403 },
      { user: 'admin', impersonatedUser: 'bob', code: 200 },
      { user: 'rita', impersonatedUser: undefined, code: 400 },
    ],
  )
})
