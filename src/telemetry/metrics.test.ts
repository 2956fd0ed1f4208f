// A registry of its own per part; asking twice for a name gives the same metric.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createMetrics } from './metrics.ts'

test('two registries do not see each other, one name is one metric', async () => {
  const [first, second] = [createMetrics(), createMetrics()]
  first.counter('hits', 'Hits', ['who'] as const).inc({ who: 'a' })
  first.counter('hits', 'Hits', ['who'] as const).inc({ who: 'a' }, 2)
  assert.match(await first.text(), /hits\{who="a"\} 3/)
  assert.doesNotMatch(await second.text(), /hits/)
})

test('operation histograms have the buckets of Kubernetes (C-14)', async () => {
  const metrics = createMetrics()
  metrics.histogram('storage_operation_duration_seconds', 'x').observe(0.2)
  const bounds = [...(await metrics.text()).matchAll(/le="([^"]+)"/g)].map((match) => match[1])
  assert.deepEqual(bounds.join(' '), '0.1 0.25 0.5 1 2.5 5 10 15 25 50 120 300 600 +Inf')
})
