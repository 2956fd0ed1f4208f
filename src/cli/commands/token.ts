// `hawser token`: a bearer token (or a whole kubeconfig) for somebody with a role.
import { join } from 'node:path'
import { buildCommand } from '@stricli/core'
import { isAlreadyExists } from '../../api/status-error.ts'
import { kubeconfigText, loadKubeconfig } from '../../installation/kubeconfig.ts'
import { UsageError } from '../../installation/config.ts'
import { readClusterInfo } from '../../installation/cluster-info.ts'
import type { Connection, ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'

interface Flags extends ConnectFlags {
  readonly role: 'admin' | 'read-only' | 'monitoring' | 'controller'
  readonly hours: number
  readonly asKubeconfig: boolean
}

const namespace = 'kube-system'

export const token = buildCommand<Flags, [string], Context>({
  docs: {
    brief: 'Create a token',
    fullDescription: [
      'Creates a service account in kube-system and prints a token for it. Deleting the account revokes all its tokens.',
      '',
      'Examples:',
      '  hawser token alice                              # may read everything but secrets',
      '  hawser token ci --role admin --hours 8 --as-kubeconfig > ci.kubeconfig',
      '  hawser delete serviceaccount/alice -n kube-system',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      role: {
        kind: 'enum',
        values: ['admin', 'read-only', 'monitoring', 'controller'],
        default: 'read-only',
        brief: 'Role of the account',
      },
      hours: { kind: 'parsed', parse: Number, default: '24', placeholder: 'N', brief: 'Lifetime of the token' },
      asKubeconfig: { kind: 'boolean', default: false, brief: 'Print a kubeconfig with the token in it' },
    },
    aliases: { n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, placeholder: 'NAME', brief: 'Name of the service account' }],
    },
  },
  async func(flags, name) {
    if (!(flags.hours > 0)) throw new UsageError('--hours takes a number above 0')
    using connection = connect(this, flags)
    const account = { metadata: { name, namespace, annotations: { 'hawser.dev/role': flags.role } } }
    await connection.client.create('ServiceAccount', account).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
      return connection.client.patch('ServiceAccount', { name, namespace }, { type: 'merge', body: account })
    })
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: Math.round(flags.hours * 3_600) },
    }
    const answer = await connection.client.post('ServiceAccount', { name, namespace }, 'token', request)
    const made = (answer as { status: { token: string } }).status.token
    if (!flags.asKubeconfig) return this.print(made)
    this.print(kubeconfigText({ ...(await serverOf(this, flags, connection)), token: made, user: name }))
  },
})

/** The address for other machines, if the server has told one: the file is mostly for somebody elsewhere. */
async function serverOf(context: Context, flags: ConnectFlags, { client, url }: Connection) {
  const info = await readClusterInfo(client)
  if (info) return { server: info.server, certificateAuthority: info.authority }
  const { env } = context.process
  const { ca } = loadKubeconfig(flags.kubeconfig ?? env['KUBECONFIG'] ?? join(defaultDataDirectory(env), 'kubeconfig'))
  return { server: url, ...(ca === undefined ? {} : { certificateAuthority: ca }) }
}
