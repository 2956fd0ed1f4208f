import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createAuthority, createClientCertificate, createNodeSigner } from '../apiserver/access/certificates.ts'
import type { HttpTransport } from '../client/http.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createLog } from '../telemetry/log.ts'
import { keepNodeCertificate } from './node-certificate.ts'

const dayMs = 24 * 3600_000

test('a certificate is renewed when two thirds of its time are over, and again until the server answers', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-renew-'))
  try {
    const clock = createVirtualClock()
    const authority = await createAuthority()
    const user = { name: 'system:node:w1', groups: ['system:nodes'] }
    const first = await createClientCertificate(authority, user, clock.now()) // good for a year
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
    await clock.advance(240 * dayMs)
    assert.equal(asked, 0)
    await clock.advance(5 * dayMs)
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

/** Keys are made outside of virtual time. */
async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !isSo(); tries++) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.ok(isSo())
}
