// `hawser version`: of this program, its runtime, and the server if one answers.
import { buildCommand } from '@stricli/core'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import type { OutputForm } from '../output.ts'
import { json, outputFlag, yaml } from '../output.ts'
import { packageVersion as own } from '../../installation/version.ts'

export const version = buildCommand<ConnectFlags & { readonly output: OutputForm }, [], Context>({
  docs: { brief: 'Print versions', fullDescription: 'Examples:\n  hawser version\n  hawser version -o json' },
  parameters: { flags: { ...connectFlags, output: outputFlag }, aliases: { o: 'output', n: 'namespace' } },
  async func(flags) {
    const server = await serverVersion(this, flags)
    const versions = {
      hawser: own,
      node: process.versions.node,
      sqlite: process.versions['sqlite'] ?? '',
      ...(server ? { server } : {}),
    }
    if (flags.output === 'json') this.print(json(versions))
    else if (flags.output === 'yaml') this.print(yaml(versions))
    else for (const [name, text] of Object.entries(versions)) this.print(`${name} ${text}`)
  },
})

/** Undefined when no server runs: this command works without one. */
async function serverVersion(context: Context, flags: ConnectFlags): Promise<string | undefined> {
  try {
    using connection = connect(context, flags)
    const answer = await connection.transport.request({ method: 'GET', path: '/version' }, AbortSignal.timeout(2_000))
    return (answer as { gitVersion?: string }).gitVersion
  } catch {
    return undefined
  }
}
