// Where do things lie unless the user says otherwise?
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Where a server that root started keeps its data. */
export const rootDataDirectory = '/var/lib/hawser'

export function defaultDataDirectory(env: Readonly<Partial<Record<string, string>>>): string {
  if (env['HAWSER_DATA_DIR']) return env['HAWSER_DATA_DIR']
  if (process.getuid?.() === 0) return rootDataDirectory
  return join(env['XDG_DATA_HOME'] ?? join(homedir(), '.local/share'), 'hawser')
}

/** For commands about what `hawser up` keeps on this machine. */
export const dataDirFlag = {
  kind: 'parsed',
  parse: String,
  optional: true,
  placeholder: 'DIR',
  brief: 'Data directory (default: that of hawser up)',
} as const
