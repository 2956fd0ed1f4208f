// `hawser token`: a token (or a whole kubeconfig) for somebody with a role, and the command for a machine that joins.
import { join } from 'node:path'
import { buildCommand } from '@stricli/core'
import { isAlreadyExists } from '../../api/status-error.ts'
import { kubeconfigText, loadKubeconfig } from '../../installation/kubeconfig.ts'
import { UsageError } from '../../installation/config.ts'
import type { TokenOptions } from '../../installation/bootstrap-tokens.ts'
import { createBootstrapToken, joinCommand } from '../../installation/bootstrap-tokens.ts'
import { readClusterInfo } from '../../installation/cluster-info.ts'
import type { Connection, ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import { buildRoutes } from '../routes.ts'

interface Flags extends ConnectFlags {
  readonly role: 'admin' | 'read-only' | 'monitoring' | 'controller' | 'node-bootstrap'
  readonly hours?: number
  readonly uses: number
  readonly node?: string
  readonly asKubeconfig: boolean
}

const namespace = 'kube-system'

const hoursFlag = {
  kind: 'parsed',
  parse: Number,
  optional: true,
  placeholder: 'N',
  brief: 'Lifetime (default: 24; of a bootstrap token 1)',
} as const
const usesFlag = {
  kind: 'parsed',
  parse: Number,
  default: '1',
  placeholder: 'N',
  brief: 'How many machines a bootstrap token lets in',
} as const
const nodeFlag = {
  kind: 'parsed',
  parse: String,
  optional: true,
  placeholder: 'NAME',
  brief: 'Only this node may join; it takes the place of an older one of its name',
} as const

const create = buildCommand<Flags, [string?], Context>({
  docs: {
    brief: 'Create a token',
    fullDescription: [
      'Creates a service account in kube-system and prints a token for it. Deleting the account revokes all its tokens.',
      'With the role node-bootstrap there is no account: the token lets a machine join as a node, and is over after an hour.',
      '',
      'Examples:',
      '  hawser token alice                              # may read everything but secrets',
      '  hawser token ci --role admin --hours 8 --as-kubeconfig > ci.kubeconfig',
      '  hawser token create --role node-bootstrap --uses 3',
      '  hawser delete serviceaccount/alice -n kube-system',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      role: {
        kind: 'enum',
        values: ['admin', 'read-only', 'monitoring', 'controller', 'node-bootstrap'],
        default: 'read-only',
        brief: 'Role of the account',
      },
      hours: hoursFlag,
      uses: usesFlag,
      node: nodeFlag,
      asKubeconfig: { kind: 'boolean', default: false, brief: 'Print a kubeconfig with the token in it' },
    },
    aliases: { n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, optional: true, placeholder: 'NAME', brief: 'Name of the service account' }],
    },
  },
  async func(flags, name) {
    using connection = connect(this, flags)
    if (flags.role === 'node-bootstrap') {
      if (name !== undefined || flags.asKubeconfig)
        throw new UsageError('a bootstrap token has no account and no kubeconfig', 'hawser token join-command')
      return this.print(await createBootstrapToken(connection.client, bootstrapFrom(flags), Date.now()))
    }
    if (name === undefined) throw new UsageError('the account needs a name', 'hawser token NAME --role read-only')
    const made = await tokenOf(connection, name, flags.role, hoursFrom(flags, 24))
    if (!flags.asKubeconfig) return this.print(made)
    this.print(kubeconfigText({ ...(await serverOf(this, flags, connection)), token: made, user: name }))
  },
})

const command = buildCommand<Pick<Flags, keyof ConnectFlags | 'hours' | 'uses' | 'node'>, [], Context>({
  docs: {
    brief: 'Print the command with which another machine joins',
    fullDescription: [
      'Makes a bootstrap token and prints the command to run, as root, on the machine that is to become a node.',
      'The token is good for one machine and one hour, unless told otherwise.',
      '',
      'Examples:',
      '  hawser token join-command',
      '  hawser token join-command --uses 5 --hours 24',
      '  hawser token join-command --node worker-1       # a machine that was set up anew',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags, hours: hoursFlag, uses: usesFlag, node: nodeFlag },
    aliases: { n: 'namespace' },
  },
  async func(flags) {
    using connection = connect(this, flags)
    this.print(await joinCommand(connection.client, bootstrapFrom(flags), Date.now()))
  },
})

export const token = buildRoutes({
  routes: { create, 'join-command': command },
  defaultCommand: 'create',
  docs: {
    brief: 'Create a token for a person, a program, or a machine that joins',
    fullDescription: ['Examples:', '  hawser token create alice', '  hawser token join-command'].join('\n'),
  },
})

async function tokenOf({ client }: Connection, name: string, role: string, hours: number): Promise<string> {
  const account = { metadata: { name, namespace, annotations: { 'hawser.dev/role': role } } }
  await client.create('ServiceAccount', account).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
    return client.patch('ServiceAccount', { name, namespace }, { type: 'merge', body: account })
  })
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: Math.round(hours * 3_600) },
  }
  const answer = await client.post('ServiceAccount', { name, namespace }, 'token', request)
  return (answer as { status: { token: string } }).status.token
}

function bootstrapFrom(flags: Pick<Flags, 'hours' | 'uses' | 'node'>): TokenOptions {
  const { uses, node } = flags
  if (!Number.isSafeInteger(uses) || uses < 1) throw new UsageError('--uses takes a whole number above 0')
  return { hours: hoursFrom(flags, 1), uses, ...(node === undefined ? {} : { node }) }
}

function hoursFrom({ hours }: Pick<Flags, 'hours'>, usual: number): number {
  if (hours !== undefined && !(hours > 0)) throw new UsageError('--hours takes a number above 0')
  return hours ?? usual
}

/** The address for other machines, if the server has told one: the file is mostly for somebody elsewhere. */
async function serverOf(context: Context, flags: ConnectFlags, { client, url }: Connection) {
  const info = await readClusterInfo(client)
  if (info) return { server: info.server, certificateAuthority: info.authority }
  const { env } = context.process
  const { ca } = loadKubeconfig(flags.kubeconfig ?? env['KUBECONFIG'] ?? join(defaultDataDirectory(env), 'kubeconfig'))
  return { server: url, ...(ca === undefined ? {} : { certificateAuthority: ca }) }
}
