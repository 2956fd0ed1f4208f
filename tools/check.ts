// Is the code in order? Types, lint, format, tidy, dead code; every check runs, the first failure does not hide the rest.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { requirePinnedNode } from './runtime.ts'

requirePinnedNode()
const root = join(import.meta.dirname, '..')
const bin = (name: string) => join(root, 'node_modules/.bin', name)

const checks: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['types', bin('tsc'), '-p', '.'],
  ['lint', bin('oxlint'), '--type-aware', '--deny-warnings', 'src', 'test', 'tools', 'examples'],
  ['format', bin('oxfmt'), '--check', 'src', 'test', 'tools', 'examples'],
  ['tidy', process.execPath, 'tools/tidy.ts'],
  ['dead code', bin('knip')],
]

const failed = checks.filter(([name, command, ...args]) => {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  process.stdout.write(`${status === 0 ? 'ok    ' : 'FAILED'} ${name}\n`)
  return status !== 0
})
process.exit(failed.length === 0 ? 0 : 1)
