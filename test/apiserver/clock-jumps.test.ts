// What are tokens and events worth after somebody has set the server's clock? Kubernetes' own rule for tokens: one that was made in the
// future is not good yet, or a mistake of a year would make an hour's token good for a year. A pod's token is replaced by its node.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createInProcessClient } from '../../src/client/in-process.ts'
import { createBootstrapToken } from '../../src/installation/bootstrap-tokens.ts'
import { makeServer, paths, type TestServer } from '../kit/api-server.ts'

const minute = 60_000
const hour = 60 * minute
const year = 365 * 24 * hour

const tokens = {
  'a service account token': async ({ post }: TestServer) => {
    const answer = await post('/api/v1/namespaces/default/serviceaccounts/default/token', {
      spec: { expirationSeconds: 3600 },
    })
    return answer.body.status.token as string
  },
  'a bootstrap token': ({ server, clock }: TestServer) =>
    createBootstrapToken(createInProcessClient(server.api()), { hours: 1, uses: 1 }, clock.now()),
}

const isGood = async ({ post }: TestServer, token: string): Promise<boolean> => {
  const { body } = await post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token } })
  return body.status.authenticated === true
}

/** How far the clock was from the truth when the token was made, and is when it is shown. */
const cases = [
  { what: 'made while the clock was a year ahead', made: year, shown: 0, good: false },
  { what: 'made while the clock was a year behind', made: -year, shown: 0, good: false },
  { what: 'made while the clock was half a minute ahead', made: minute / 2, shown: 0, good: true },
  { what: 'made while the clock was ten minutes behind', made: -10 * minute, shown: 0, good: true },
  { what: 'shown while the clock is a year ahead', made: 0, shown: year, good: false },
  { what: 'shown while the clock is a year behind', made: 0, shown: -year, good: false },
] as const

for (const [kind, make] of Object.entries(tokens))
  for (const { what, made, shown, good } of cases)
    test(`${kind} ${what} is ${good ? 'good' : 'not good'}, and good when the clock is as it was`, async () => {
      await using server = await makeServer()
      await server.clock.settle()
      server.clock.jump(made)
      const token = await make(server)
      assert.equal(await isGood(server, token), true, 'when it was made')
      server.clock.jump(shown - made)
      assert.equal(await isGood(server, token), good)
      server.clock.jump(made - shown)
      assert.equal(await isGood(server, token), true, 'as it was')
      await server.clock.advance(hour)
      assert.equal(await isGood(server, token), false, 'after its hour')
      server.clock.jump(shown - made)
      assert.equal(await isGood(server, await make(server)), true, 'a new one')
    })

for (const { name, ms } of [
  { name: 'forward a year', ms: year },
  { name: 'back a year', ms: -year },
])
  test(`set ${name}: events live for an hour`, async () => {
    await using server = await makeServer()
    const { clock, post, get } = server
    const path = `${paths.pods.replace(/pods$/, 'events')}`
    const write = (reason: string) =>
      post(path, {
        metadata: { name: reason },
        involvedObject: { namespace: 'default' },
        reason,
        lastTimestamp: new Date(clock.now()).toISOString().replace(/\.\d+/, ''),
      })
    const reasons = async () => (await get(path)).body.items.map((each: { reason: string }) => each.reason)
    assert.equal((await write('before')).code, 201)
    await clock.advance(30 * minute)
    clock.jump(ms)
    assert.equal((await write('after')).code, 201)
    await clock.advance(20 * minute)
    assert.deepEqual(await reasons(), ['after', 'before'])
    await clock.advance(35 * minute)
    assert.deepEqual(await reasons(), ['after'])
    await clock.advance(30 * minute)
    assert.deepEqual(await reasons(), [])
  })
