// Every built-in plugin takes the node plugin contract, on the in-memory host.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluginName } from '../../src/api/names.ts'
import { pluginCases } from '../kit/plugin-cases.ts'
import { createModelPluginFixture } from '../kit/plugin-fixture.ts'
import { nodePluginContract } from './node-plugin.ts'

for (const each of pluginCases.filter(({ spec }) => spec.mode === 'Filesystem')) nodePluginContract(each)

test('every built-in plugin has a case here', async () => {
  const bench = await createModelPluginFixture()
  const registry = bench.registry()
  const covered = new Set(pluginCases.map(({ spec }) => registry.find(spec).name))
  // Always refuses to mount (GIT-1).
  covered.add(pluginName('kubernetes.io/git-repo'))
  assert.deepEqual(
    registry.all().filter(({ name }) => !covered.has(name)),
    [],
  )
  await bench.close()
})
