// Does `why` name the right cause in the recorded scenarios that end with something waiting? Each is played alone, its objects
// are kept, and `why` is asked about them; the scenario's own outcome is compared as well.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createHttpClient } from '../../src/client/http.ts'
import type { Cause } from '../../src/cli/why/causes.ts'
import { why } from '../support/assert-why.ts'
import { runProgram, startServer } from '../support/server-process.ts'

const suite = join(import.meta.dirname, 'suite')

/**
 * ID is the scenario's own prefix; a claim without a namespace is in its first one. Many scenarios name a class that is no
 * object: their volumes carry the same word. When none fits, what is missing is the class, in Kubernetes' own words as well.
 */
const expected: Readonly<Record<string, Readonly<Record<string, Cause>>>> = {
  '003-bind-too-small': { 'pvc/c1': 'classMissing' },
  '014-bind-modes-missing': { 'pvc/c1': 'classMissing' },
  '016-bind-rwop': { 'pvc/c2': 'classMissing' },
  '021-bind-one-volume-two-claims': { 'pvc/c2': 'classMissing' },
  '026-bind-skip-released-volume': { 'pv/ID-v1': 'retained', 'pvc/c2': 'classMissing' },
  '032-prebound-pv-other-uid': { 'pv/ID-v1': 'retained', 'pvc/c1': 'classMissing' },
  '035-prebound-pv-mode-mismatch': { 'pvc/c1': 'classMissing' },
  '038-prebound-pv-not-for-others': { 'pvc/c2': 'classMissing' },
  '043-named-volume-too-small': { 'pvc/c1': 'namedVolumeUnfit' },
  '044-named-volume-other-class': { 'pvc/c1': 'namedVolumeUnfit' },
  '046-named-volume-other-volume-mode': { 'pvc/c1': 'namedVolumeTaken' },
  '053-named-volume-terminating': { 'pv/ID-v1': 'finalizersHold', 'pvc/c1': 'namedVolumeUnfit' },
  '060-lost-volume-gone': { 'pvc/c1': 'volumeLost' },
  '063-lost-returned-other-uid': { 'pvc/c1': 'volumeLost' },
  '067-lost-mark-without-volume': { 'pvc/c1': 'volumeLost' },
  '080-reclaim-retain': { 'pv/ID-v1': 'retained', 'pvc/c1': 'classMissing' },
  '083-reclaim-delete-static-csi': { 'pv/ID-v1': 'askedDeleter' },
  '088-reclaim-recycle-unsupported': { 'pv/ID-v1': 'volumeFailed' },
  '095-reclaim-named-released': { 'pv/ID-v1': 'retained', 'pvc/c1': 'namedVolumeTaken' },
  '097-reclaim-in-tree-name-without-plugin': { 'pv/ID-v1': 'reclaimFailed' },
  '118-protect-volume-bound': { 'pv/ID-v1': 'volumeProtected' },
  '150-provision-asked': { 'pvc/c1': 'provisionerAbsent' },
  '153-provision-class-missing': { 'pvc/c1': 'provisionerAbsent' },
  '155-provision-unknown-in-tree': { 'pvc/c1': 'noProvisioner' },
  '165-provision-too-small': { 'pvc/c1': 'provisionerAbsent' },
  '180-delayed-waits': { 'pvc/c1': 'firstConsumer' },
  '182-delayed-pod-unscheduled': { 'pvc/c1': 'noNodes' },
  '185-delayed-selected-node-free-volume': { 'pvc/c1': 'provisionerAbsent' },
  '210-ephemeral-created': { 'pvc/p1-scratch': 'classMissing' },
  '215-ephemeral-name-collision': { 'pod/a': 'foreignClaim', 'pod/a-b': 'classMissing' },
  '233-detach-pod-failed': { 'va/ONE': 'detaching' },
  '252-node-not-ready-waits': { 'va/ONE': 'detaching' },
  '272-attach-claim-lost': { 'pvc/c1': 'volumeLost' },
}

test('why, in every recorded scenario that ends with something waiting', { timeout: 600_000 }, async (context) => {
  await using server = await startServer(['--bare', '--store', 'memory'])
  using client = createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true })
  const namespaces = async () => (await client.list('Namespace')).items.map(({ metadata }) => metadata.name ?? '')
  const seen = new Set(await namespaces())
  for (const [scenario, causes] of Object.entries(expected)) {
    await context.test(scenario, async () => {
      const played = await runProgram(process.execPath, [
        join(suite, 'run.mjs'),
        ...['--url', server.url, '--token', server.token, '--only', scenario, '--keep', '--no-skip'],
        ...['--scenarios', join(suite, 'scenarios'), '--compare', join(suite, 'expected')],
      ])
      assert.equal(played.code, 0, played.stdout)
      const namespace = (await namespaces()).find((name) => !seen.has(name) && name.endsWith('-ns')) ?? ''
      for (const name of await namespaces()) seen.add(name)
      const id = namespace.slice(0, -'-ns'.length)
      const attachment = (await client.list('VolumeAttachment')).items.find(({ spec }) => spec.nodeName.includes(id))
      const told = await Promise.all(
        Object.keys(causes).map(async (words) => {
          const named = words.replace('ID', id).replace('ONE', attachment?.metadata.name ?? '')
          const subject = /^(pvc|pod)\//.test(named) ? named.replace('/', `/${namespace}/`) : named
          const { blocked } = await why({ client, clock: { now: Date.now } }, subject)
          return [words, blocked?.cause]
        }),
      )
      assert.deepEqual(Object.fromEntries(told), causes)
    })
  }
})
