// Does `hawser up` have what programs made for Kubernetes look for first (E5)? Its service and its authority, as kubectl reads them.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { kubectlBinaries } from '../kit/kubectl.ts'
import { runProgram, startServer } from '../kit/server-process.ts'

const [kubectl] = kubectlBinaries()

test(
  'the authority in a namespace verifies the server at the address of its service',
  { skip: !kubectl && 'no kubectl at hand' },
  async () => {
    await using server = await startServer(['--bare', '--store', 'memory'])
    const directory = mkdtempSync(join(tmpdir(), 'hawser-objects-'))
    const run = async (...words: string[]) => {
      const { code, stdout, stderr } = await runProgram(kubectl!, words, { env: { KUBECONFIG: server.kubeconfig } })
      assert.equal(code, 0, stderr)
      return stdout
    }
    try {
      const address = await run(
        'get',
        'service',
        'kubernetes',
        '-o',
        'jsonpath={.spec.clusterIP}:{.spec.ports[0].port}',
      )
      assert.match(await run('get', 'service'), /kubernetes\s+ClusterIP\s+127\.0\.0\.1\s+<none>\s+\d+\/TCP/)
      const authority = join(directory, 'ca.crt')
      writeFileSync(authority, await run('get', 'cm', 'kube-root-ca.crt', '-o', 'jsonpath={.data.ca\\.crt}'))
      assert.equal(
        await run(`--server=https://${address}`, `--certificate-authority=${authority}`, 'get', '--raw', '/readyz'),
        'ok',
      )
      assert.match(await run('cluster-info'), /control plane/i)
    } finally {
      rmSync(directory, { recursive: true })
    }
  },
)
