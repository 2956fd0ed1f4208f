// Whose is this node root? It is locked and its record compared before the node touches anything in it.
import { existsSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Host } from '../host/host.ts'
import { podsDirectory } from '../volume/paths.ts'
import type { NodeConfig } from './config.ts'
import { UsageError } from './config.ts'
import { takeLock } from './directory-lock.ts'
import type { ClusterMark, NodeFacts } from './identity.ts'
import { decideNode, otherRoot } from './identity.ts'
import { nodeRecordName, requireNoDataDirectory, requireOutsideRoots } from './outer-root.ts'
import { readNodeRecord, writeRecord } from './records.ts'
import { requireTrustedPath } from './trusted.ts'

export interface NodeIdentity extends Disposable {
  /** This root is of the server's cluster: from now on the node may clean up in it. */
  readonly isProven: boolean
  /** Throws a UsageError that says what was found and what to do. */
  prove(server: ClusterMark | 'hidden', signal: AbortSignal): Promise<void>
}

export interface NodeIdentityDeps {
  readonly dataDirectory: string
  readonly node: NodeConfig
  readonly host: Pick<Host, 'mounts'>
}

/** Holds the locks until disposed; throws a UsageError where the root is used, or was used by a node of another name. */
export async function openNodeIdentity(deps: NodeIdentityDeps, signal: AbortSignal): Promise<NodeIdentity> {
  const { dataDirectory, node } = deps
  requireOutsideRoots(`the root of node ${node.name}, ${node.root},`, node.root, otherRoot)
  requireNoDataDirectory(node.name, node.root, otherRoot)
  using stack = new DisposableStack()
  let holder: string | undefined
  // Containers lie in the data directory under the node's name: two roots must not share them either.
  for (const directory of [node.root, join(dataDirectory, 'locks', node.name)]) {
    mkdirSync(directory, { recursive: true, mode: 0o750 })
    requireTrustedPath(directory, `the directory ${directory} of node ${node.name}`)
    const attempt = takeLock(join(directory, 'node.lock'))
    if (attempt.kind === 'held') stack.defer(attempt.release)
    else holder ??= attempt.holder
  }
  await requireFit(deps, 'silent', holder, signal)
  let isProven = false
  const kept = stack.move()
  return {
    get isProven() {
      return isProven
    },
    async prove(server, proving) {
      await requireFit(deps, server, undefined, proving)
      const seen = server === 'hidden' ? {} : { seen: server }
      writeRecord(recordFile(node), { node: node.name, ...seen })
      isProven = true
    },
    [Symbol.dispose]: () => kept.dispose(),
  }
}

/** The name of the node that used this root last; undefined where none did. */
export function nameOfRoot(root: string): string | undefined {
  const found = readNodeRecord(join(root, nodeRecordName))
  return found.kind === 'read' ? found.record.node : undefined
}

async function requireFit(
  deps: NodeIdentityDeps,
  server: NodeFacts['server'],
  holder: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { node } = deps
  const decision = decideNode({
    root: node.root,
    recordFile: recordFile(node),
    node: node.name,
    holder,
    record: readNodeRecord(recordFile(node)),
    server,
    holds: await contents(deps, signal),
  })
  if (decision.kind === 'refuse') throw new UsageError(decision.sentence, decision.remedy)
}

async function contents({ node, host }: NodeIdentityDeps, signal: AbortSignal): Promise<NodeFacts['holds']> {
  const pods = podsDirectory(node.root)
  const below = `${realpathSync(node.root)}/`
  const mounts = await host.mounts.list(signal)
  return {
    pods: existsSync(pods) ? readdirSync(pods).length : 0,
    mounts: mounts.filter(({ mountPoint }) => mountPoint.startsWith(below)).length,
  }
}

const recordFile = ({ root }: NodeConfig) => join(root, nodeRecordName)
