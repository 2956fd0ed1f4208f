// Which versions and names are accepted? REG-6 and REG-10 as tables.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkDriverName, compareVersions, highestSupported } from './versions.ts'

test('the highest version of major 1 counts (REG-6)', () => {
  assert.deepEqual(highestSupported(['0.3.0', 'v1.2.0', '1.10.0', '2.0.0']), [1, 10, 0])
  for (const versions of [[], ['0.3.0'], ['2.0.0'], ['soon']]) assert.throws(() => highestSupported(versions))
  assert.ok(compareVersions([1, 0, 1], [1, 0]) > 0)
  assert.equal(compareVersions([1, 0, 0], [1]), 0)
})

test('names are DNS subdomains of at most 63 bytes, in any case (REG-10)', () => {
  for (const name of ['a', 'EBS.csi.aws.com', 'local.hawser.dev']) checkDriverName(name)
  for (const name of ['', 'a_b', '-a', 'a..b', 'x'.repeat(64), 'a/b']) assert.throws(() => checkDriverName(name), name)
})
