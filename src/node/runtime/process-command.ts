// With which words does a command begin inside a container? Its namespace, its directory, its user, its variables.
import type { ProcessIdentity } from '../../host/processes.ts'
import { enterScript, execScript } from './launcher.ts'
import type { ProcessSettings } from './port.ts'

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** As the enter script takes them. */
export function variablesOf({ env }: Pick<ProcessSettings, 'env'>): Record<string, string> {
  const variables = Object.entries(env).map(([key, value], index) => [`HAWSER_E${index}`, `${key}=${value}`])
  return { PATH: searchPath, HAWSER_COUNT: String(variables.length), ...Object.fromEntries(variables) }
}

export function privilegesOf({ user, group, groups }: ProcessSettings): string {
  if (user === undefined && group === undefined && groups.length === 0) return ''
  const parts = [groups.length > 0 ? `--groups=${groups.join(',')}` : '--clear-groups']
  if (user !== undefined) parts.push(`--reuid=${user}`)
  if (group !== undefined) parts.push(`--regid=${group}`)
  return parts.join(' ')
}

/** A command beside the container's own process: it sees what that one sees. */
export function argvInside(
  request: ProcessSettings & { readonly argv: readonly string[] },
  process: ProcessIdentity,
): [string, ...string[]] {
  return [
    'nsenter',
    `--target=${process.pid}`,
    '--mount',
    '--',
    '/bin/sh',
    '-c',
    execScript,
    'hawser-exec',
    request.workingDirectory,
    privilegesOf(request),
    enterScript,
    ...request.argv,
  ]
}
