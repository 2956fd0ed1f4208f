// Does a claim live its whole life on the built-in driver? Every scenario on each filesystem and as a raw device, in shared
// mode on two nodes: provision, attach, mount, write, move, grow, snapshot, restore, delete, and nothing is left anywhere.
import { existsSync, readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { localDriverName } from '../../../src/drivers/local/driver.ts'
import { startCsiCluster } from '../../kit/real-cluster.ts'
import type { CsiCluster } from '../../kit/real-cluster.ts'
import { inline, readOnlyMany, sharedByPods, wholeLife } from './scenarios.ts'
import type { Subject } from './scenarios.ts'

const asRoot = process.getuid?.() === 0 ? false : 'needs root for mounts and loop devices'
const options = { skip: asRoot, timeout: 60_000 }

/** Growing a mounted ext4 needs CAP_SYS_RESOURCE, which test machines may lack. */
const mayResizeMounted =
  (BigInt(`0x${/CapEff:\s+(\w+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'}`) >> 24n) & 1n

interface Filesystem {
  readonly type: string
  readonly size: string
  readonly grownSize: string
  readonly growsMounted: boolean
  readonly mountsCopies: boolean
}

const filesystems: readonly Filesystem[] = [
  { type: 'ext4', size: '16Mi', grownSize: '64Mi', growsMounted: mayResizeMounted !== 0n, mountsCopies: true },
  { type: 'xfs', size: '320Mi', grownSize: '448Mi', growsMounted: true, mountsCopies: true },
  { type: 'btrfs', size: '160Mi', grownSize: '320Mi', growsMounted: true, mountsCopies: false },
]

let cluster: CsiCluster
before(async () => {
  if (asRoot) return
  cluster = await startCsiCluster({ mode: 'shared', nodeNames: ['n1', 'n2'] })
  for (const { type } of filesystems) {
    await cluster.client.create('StorageClass', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: type },
      provisioner: localDriverName,
      reclaimPolicy: 'Delete',
      allowVolumeExpansion: true,
      parameters: { 'csi.storage.k8s.io/fstype': type },
    })
  }
})
after(() => cluster?.[Symbol.asyncDispose]())

const subjectOf = ({ type, ...facts }: Filesystem): Subject => ({
  cluster,
  nodes: ['n1', 'n2'],
  storageClassName: type,
  snapshotClassName: 'snaps',
  limitsSize: true,
  held: () => cluster.driverVolumes(),
  ...facts,
})

for (const filesystem of filesystems) {
  const { type } = filesystem
  const tool = ['/usr/sbin', '/sbin', '/usr/bin'].some((path) => existsSync(`${path}/mkfs.${type}`))
  const skip = asRoot || (tool ? false : `mkfs.${type} is missing`)
  if (skip) console.log(`# LOUDLY SKIPPED: the built-in driver on ${type}: ${skip}`)
  const withTool = { ...options, skip }
  test(`${type}: a filesystem, its whole life (SIDE-61 … SIDE-63)`, withTool, () =>
    wholeLife(subjectOf(filesystem), 'Filesystem'),
  )
  test(`${type}: two pods share a volume, one reads only`, withTool, () =>
    sharedByPods(subjectOf(filesystem), ['ReadWriteMany']),
  )
  test(`${type}: ReadOnlyMany, filled from a clone (SIDE-13)`, withTool, () => readOnlyMany(subjectOf(filesystem)))
}

const [ext4] = filesystems
test('a raw device, its whole life (CSI-50 … CSI-54, CSI-61)', options, () => wholeLife(subjectOf(ext4!), 'Block'))
test('an inline volume (CSI-43, TP-34)', options, () =>
  inline(subjectOf(ext4!), { driver: localDriverName, fsType: 'ext4', volumeAttributes: { size: '8Mi' } }),
)
