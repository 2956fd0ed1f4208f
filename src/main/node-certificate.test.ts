import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  createAuthority,
  createClientCertificate,
  createKey,
  createNodeSigner,
  createRequest,
} from '../apiserver/access/certificates.ts'
import type { HttpTransport } from '../client/http.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createLog } from '../telemetry/log.ts'
import { keepNodeCertificate, renewAfterMs } from './node-certificate.ts'

const dayMs = 24 * 3600_000

test('a certificate is renewed when two thirds of its time are over, and again until the server answers', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-renew-'))
  try {
    const clock = createVirtualClock()
    const authority = await createAuthority()
    const user = { name: 'system:node:w1', groups: ['system:nodes'] }
    const first = await createClientCertificate(authority, user, clock.now() - 275 * dayMs) // good for 90 days more
    const file = join(directory, 'node-client.pem')
    writeFileSync(file, `${first.key}${first.certificate}`)
    let [asked, isAway] = [0, true]
    const used: string[] = []
    const renewed = Promise.withResolvers<void>()
    const transport = {
      async request({ body = '' }: { body?: string }) {
        asked++
        if (isAway) throw new Error('nobody answers')
        const { spec } = JSON.parse(body) as { spec: { node: string; request: string } }
        assert.equal(spec.node, 'w1')
        const read = await createNodeSigner(() => authority).read(spec.request)
        const { certificate } = await read!.sign(user, clock.now(), 90 * dayMs)
        return { status: { certificate } }
      },
      useCertificate({ cert }: { cert: string }) {
        used.push(cert)
        renewed.resolve()
      },
    } as unknown as HttpTransport // a test's transport: only these two are used
    await using _keeping = keepNodeCertificate(
      { dataDirectory: directory, node: 'w1' },
      { transport, clock, log: createLog(() => {}) },
    )
    await clock.advance(59 * dayMs)
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.equal(asked, 0)
    await clock.advance(2 * dayMs)
    await until(() => asked > 0)
    assert.equal(
      readFileSync(file, 'utf8'),
      `${first.key}${first.certificate}`,
      'the old one stays while nobody answers',
    )
    isAway = false
    while (used.length === 0) {
      await clock.advance(5 * 60_000)
      await Promise.race([renewed.promise, new Promise((resolve) => setTimeout(resolve, 5))])
    }
    const kept = readFileSync(file, 'utf8')
    assert.ok(kept.includes(used[0]!.trim()) && !kept.includes(first.key.trim()), 'a new key and its certificate')
    assert.equal(statSync(file).mode & 0o777, 0o600)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

for (const { name, years, least, most } of [
  { name: 'right', years: 0, least: 1, most: 1 },
  { name: 'a year behind', years: -1, least: 1, most: 1 },
  { name: 'a year ahead', years: 1, least: 1, most: 82 },
])
  test(`an agent whose clock is ${name} renews its certificate in good time, and not again and again`, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hawser-renew-'))
    try {
      const clock = createVirtualClock()
      /** The server's, which is right. */
      const started = clock.steady()
      const serverTime = () => Date.UTC(2026, 0, 1) + clock.steady() - started
      const authority = await createAuthority()
      const user = { name: 'system:node:w1', groups: ['system:nodes'] }
      const sign = async (request: string) =>
        (await createNodeSigner(() => authority).read(request))!.sign(user, serverTime(), 90 * dayMs)
      const key = await createKey()
      const { certificate } = await sign(await createRequest(user.name, key))
      writeFileSync(join(directory, 'node-client.pem'), `${key}${certificate}`)
      let [asked, renewed] = [0, 0]
      const transport = {
        async request({ body = '' }: { body?: string }) {
          asked++
          return { status: await sign((JSON.parse(body) as { spec: { request: string } }).spec.request) }
        },
        useCertificate: () => void renewed++,
      } as unknown as HttpTransport // a test's transport: only these two are used
      clock.jump(years * 365 * dayMs)
      await using _keeping = keepNodeCertificate(
        { dataDirectory: directory, node: 'w1' },
        { transport, clock, log: createLog(() => {}) },
      )
      for (let day = 0; day < 80; day++) {
        await clock.advance(dayMs)
        // Keys are made outside of virtual time: as long as that goes on, or a little.
        for (let wait = 0; wait < 3 || (asked > renewed && wait < 1_000); wait++)
          await new Promise((resolve) => setTimeout(resolve, 2))
      }
      assert.ok(asked >= least && asked <= most, `asked ${asked} times in 80 days`)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

test('when a certificate is renewed', () => {
  const days = (left: number, isNew: boolean) => renewAfterMs(left * dayMs, isNew) / dayMs
  assert.deepEqual(
    [days(90, true), days(30, true), days(455, true), days(-300, true), days(90, false), days(40, false)],
    [60, 20, 60, 1, 60, 10],
  )
  assert.deepEqual([days(30, false), days(3, false), days(-300, false), days(455, false)], [0, 0, 0, 60])
})

/** Keys are made outside of virtual time. */
async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !isSo(); tries++) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.ok(isSo())
}
