// Are the examples right? Every manifest is accepted by the server. (Scripts are run by the pages that name them.)
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { launcher, repository, runProgram, startServer } from '../kit/server-process.ts'

test('every manifest of docs/examples is accepted', async () => {
  await using server = await startServer(['--bare', '--store', 'memory'])
  const files = globSync('docs/examples/*.yaml', { cwd: repository }).toSorted()
  assert.ok(files.length >= 3)
  for (const file of files) {
    const args = ['apply', '--dry-run', '-f', join(repository, file)]
    const { code, stderr } = await runProgram(launcher, args, { env: { KUBECONFIG: server.kubeconfig } })
    assert.equal(code, 0, `${file}: ${stderr}`)
  }
})
