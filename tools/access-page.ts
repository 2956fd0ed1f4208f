// What does docs/reference/access.md say? Who may do what, printed from the grants that the server itself asks.
import { kindNames, kinds } from '../src/api/kinds.ts'
import type { KindInfo } from '../src/api/kinds.ts'
import type { NodeRule, Verb } from '../src/api/kinds/define-kind.ts'
import { allVerbs } from '../src/api/kinds/define-kind.ts'
import { grantOf, groupsOfRoles } from '../src/apiserver/access/grants.ts'
import type { Grant, Role } from '../src/apiserver/access/grants.ts'

export function accessPage(): string {
  return `# Access

Which role may do what. [Give somebody access](../how-to/give-access.md) says how to hand a role out. The server decides with the
function that this page is printed from, and [a test](../../test/apiserver/access-table.test.ts) sends every request of these
tables to it.

| Role | Group of the user | May |
|---|---|---|
${Object.entries(groupsOfRoles)
  .map(([role, group]) => `| [${role}](#${role}) | \`${group}\` | ${summaries[role as keyof typeof groupsOfRoles]} |`)
  .join('\n')}

Every known user may ask about itself (\`kubectl auth whoami\`, \`kubectl auth can-i\`) and read \`/version\`, health, discovery and
OpenAPI. Only \`admin\`, \`read-only\` and \`monitoring\` read \`/metrics\`. A user without a role may do nothing else.

Only \`admin\` may act as somebody else (\`kubectl --as\`); for others the request is refused, never done under their own name.

## admin

Everything.

## read-only

\`get\`, \`list\` and \`watch\` of every kind and subresource except:

${exceptions()}

## monitoring

\`/metrics\`, and \`get\` of \`nodes/metrics\` and \`nodes/stats\`, which an agent asks about before it answers \`/metrics\` and
\`/stats/summary\` at its own port.

## controller

What [the controllers](../../src/controllers/README.md) and [the CSI jobs](../../src/csi/README.md) use; where they update they may also patch. It may create no pods: a pod
with a hostPath volume reads every file of its node. So the recycler (reclaim policy \`Recycle\`) works only in the server's own
process.

A controller reads a secret only by name, and only if a StorageClass, VolumeSnapshotClass, PersistentVolume or VolumeSnapshotContent
names it. It cannot add a reference to a volume or content that no class allows. A class whose names are templates allows every
secret that the template can mean: \`\${pvc.namespace}\` stands for any namespace.

It makes only volumes of CSI drivers, and changes the reclaim policy of no others: the server itself empties or deletes what a
volume of a path names. It changes no labels or finalizers through \`status\`, and no owners of an object that it may not delete.
A controller decides which volume a claim gets. Whoever has this role can give a pod another pod's data: hand it out as
carefully as the data itself.

${table('controller')}

## node

The user is \`system:node:NAME\`. A list or watch names the objects by a field selector; for other verbs a selector means nothing.
Through \`status\` a node changes no labels, finalizers or owners, and of a claim only capacity, conditions and allocated resources.
Of its own Node it changes neither taints nor the labels of Kubernetes that are not for kubelets (\`node-restriction.kubernetes.io/…\`, \`node-role.kubernetes.io/…\`).
A token is bound to a pod of the node and its account, and good for at most 24 hours; the token that every pod gets may live as
long as its pod, up to a year, as in Kubernetes.

${table('node')}

Nodes also create \`tokenreviews\` and \`subjectaccessreviews\`: their own server asks who a client is and what it may do. They
create \`nodecertificates\` of their own name, to renew their certificate. A certificate of a node is good while the server has it
on record: \`hawser node rm\` removes the record.

## node-bootstrap

The user of a bootstrap token (\`hawser token create --role node-bootstrap\`): create \`nodecertificates\`, as often as the token may be
used. Nothing else.
`
}

const summaries: Readonly<Record<keyof typeof groupsOfRoles, string>> = {
  admin: 'everything',
  'read-only': 'read everything but secrets; no exec, attach or port-forward',
  monitoring: 'read metrics',
  controller: 'what the controllers and CSI jobs need',
  node: 'what the agent of one node needs',
  'node-bootstrap': 'ask for the first certificate of a node',
}

interface Row {
  readonly resource: string
  readonly verbs: readonly Verb[]
  readonly which: string
}

function table(role: Role): string {
  const rows = kindNames.map((name) => kinds[name]).flatMap((info) => rowsOf(role, info))
  return [
    '| Resource | Verbs | Which objects |',
    '|---|---|---|',
    ...rows.map(({ resource, verbs, which }) => `| ${resource} | ${verbs.join(', ')} | ${which} |`),
  ].join('\n')
}

function rowsOf(role: Role, info: KindInfo): readonly Row[] {
  const parts = [undefined, ...info.subresources.map(({ name }) => name)]
  return parts.flatMap((subresource) => {
    const granted = grantsOf(role, info, subresource).filter(({ grant }) => grant.to !== 'nothing')
    const [first] = granted
    if (first === undefined) return []
    const resource = resourceName(info, subresource)
    return [{ resource, verbs: granted.map(({ verb }) => verb), which: scopeOf(first.grant, subresource) }]
  })
}

function grantsOf(role: Role, info: KindInfo, subresource: string | undefined) {
  const found = info.subresources.find(({ name }) => name === subresource)
  const verbs = found?.answeredByNode === 'stream' ? (['create'] as const) : (found?.verbs ?? allVerbs)
  const { group, plural: resource } = info
  return verbs.map((verb) => ({ verb, grant: grantOf(role, { group, resource, subresource, verb }) }))
}

function resourceName({ group, plural }: KindInfo, subresource: string | undefined): string {
  const part = subresource === undefined ? '' : `/${subresource}`
  return `${plural}${part}${group === '' ? '' : ` (${group})`}`
}

function scopeOf(grant: Grant, subresource: string | undefined): string {
  switch (grant.to) {
    case 'all':
      return 'all'
    case 'nothing':
      return 'none'
    case 'namedSecrets':
      return 'named by a class, a volume or a snapshot content'
    case 'objectsOfNode':
      return nodeScope(grant.rule, subresource)
    default:
      return grant satisfies never
  }
}

function nodeScope(rule: NodeRule, subresource: string | undefined): string {
  switch (rule.may) {
    case 'ownName':
      return rule.inNamespace === undefined ? "of the node's name" : `of the node's name, in \`${rule.inNamespace}\``
    case 'ownPods':
      return 'bound to the node'
    case 'usedByPods':
      return subresource === 'token' ? 'bound to a pod of the node that has the account' : 'used by a pod of the node'
    case 'volumesOfPods':
      return 'bound to a claim of a pod of the node'
    case 'ownAttachments':
      return 'of the node'
    case 'readAll':
      return 'all'
    case 'ownEvents':
      return "in the node's name, about itself, its pods, their claims and volumes"
    case 'ownRecords':
      return 'of the node'
    default:
      return rule satisfies never
  }
}

function exceptions(): string {
  const refused = kindNames
    .map((name) => kinds[name])
    .flatMap((info) =>
      [undefined, ...info.subresources.map(({ name }) => name)].flatMap((subresource) => {
        const reads = grantsOf('read-only', info, subresource).filter(({ verb }) => isQuestion(info, subresource, verb))
        return reads.length > 0 && reads.every(({ grant }) => grant.to === 'nothing')
          ? [`- ${resourceName(info, subresource)}`]
          : []
      }),
    )
  return refused.join('\n')
}

/** What looks into something: reading it, or opening a stream. */
function isQuestion(info: KindInfo, subresource: string | undefined, verb: Verb): boolean {
  const isStream = info.subresources.some(
    ({ name, answeredByNode }) => name === subresource && answeredByNode === 'stream',
  )
  return isStream || verb === 'get' || verb === 'list' || verb === 'watch'
}
