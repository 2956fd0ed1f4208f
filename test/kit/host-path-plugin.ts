// A third-party CSI driver for tests: csi-driver-host-path, from the Go module registry at a pinned version.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { repository, runProgram } from './server-process.ts'

const module = 'github.com/kubernetes-csi/csi-driver-host-path/cmd/hostpathplugin@v1.17.0'

/** The path of the driver's program, or why there is none; then tests say so loudly. */
export async function hostPathPlugin(): Promise<{ path?: string; why: string }> {
  const given = process.env['HAWSER_HOSTPATH_PLUGIN']
  if (given !== undefined) return existsSync(given) ? { path: given, why: '' } : { why: `${given} does not exist` }
  const bin = join(repository, '.cache/go-bin')
  const path = join(bin, 'hostpathplugin')
  if (existsSync(path)) return { path, why: '' }
  mkdirSync(bin, { recursive: true })
  const answer = await runProgram('go', ['install', '-ldflags', '-X main.version=v1.17.0', module], {
    env: { GOBIN: bin, GOFLAGS: '-mod=mod' },
  }).catch((error: Error) => ({ code: 1, stdout: '', stderr: error.message }))
  if (answer.code === 0) return { path, why: '' }
  return { why: `${module} cannot be installed: ${answer.stderr.trim().split('\n').at(-1)}` }
}
