// With which words does a command begin inside a container? Its directory, its user, its variables.
import type { ProcessRights } from '../../host/processes.ts'
import { enterScript } from './launcher.ts'
import type { ProcessSettings } from './port.ts'

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** As the enter script takes them. */
export function variablesOf({ env }: Pick<ProcessSettings, 'env'>): Record<string, string> {
  const variables = Object.entries(env).map(([key, value], index) => [`HAWSER_E${index}`, `${key}=${value}`])
  return { PATH: searchPath, HAWSER_COUNT: String(variables.length), ...Object.fromEntries(variables) }
}

/** For setpriv. Root gets back on exec what the bounding set leaves. */
export function privilegesOf({ user, group, groups, capabilities, noNewPrivileges }: ProcessSettings): string {
  const parts = [groups.length > 0 ? `--groups=${groups.join(',')}` : '--clear-groups']
  if (capabilities) parts.push(`--bounding-set=${['-all', ...capabilities.map((one) => `+${one}`)].join(',')}`)
  if (capabilities) parts.push('--inh-caps=-all')
  if (noNewPrivileges === true) parts.push('--no-new-privs')
  if (user !== undefined) parts.push(`--reuid=${user}`)
  if (group !== undefined) parts.push(`--regid=${group}`)
  return parts.join(' ')
}

/** A command beside the container's own process; it has the container's rights from its first program on. */
export function argvInside({
  workingDirectory,
  argv,
}: ProcessSettings & { readonly argv: readonly string[] }): [string, ...string[]] {
  return ['/bin/sh', '-c', enterScript, 'enter', workingDirectory, ...argv]
}

export function rightsOf({ user, group, groups, capabilities, noNewPrivileges }: ProcessSettings): ProcessRights {
  return {
    groups,
    ...(user === undefined ? {} : { user }),
    ...(group === undefined ? {} : { group }),
    ...(capabilities ? { capabilities } : {}),
    ...(noNewPrivileges === undefined ? {} : { noNewPrivileges }),
  }
}
