// What can be wrong with a node, or with what a driver says of itself? One defect each, found by the checks that it names.
import { VolumeUsage_Unit } from '../../src/csi/generated/csi_pb.ts'
import type { Defect } from './defect.ts'
import { fail, inIdentity, inNode, insteadOf } from './defect.ts'

export const nodeDefects: Readonly<Record<string, Defect>> = {
  'publishes-nothing': {
    what: 'NodePublishVolume answers OK and mounts nothing',
    foundBy: [
      'honesty/publish/mounted',
      'honesty/stats/answer',
      'honesty/node-expand/answer',
      'honesty/at-once/publish',
      'life/data/new-is-empty',
      'life/data/mounted-again',
      'life/data/read-only',
      'life/data/deleted',
      'life/grow/unmounted',
      'life/grow/mounted',
      'life/snapshot/restored',
      'life/snapshot/larger',
      'life/snapshot/without-source',
      'life/clone/own-data',
    ],
    apply: inNode(({ nodePublishVolume }) => ({
      nodePublishVolume: async (request, signal) => {
        const { volumeId, targetPath, stagingTargetPath, volumeCapability } = request
        const isComplete = volumeId !== '' && targetPath !== '' && stagingTargetPath !== '' && volumeCapability
        return isComplete ? {} : nodePublishVolume(request, signal)
      },
    })),
  },
  'mounts-again': {
    what: 'NodePublishVolume again mounts the volume again, over itself',
    foundBy: ['honesty/publish/twice', 'honesty/at-once/publish'],
    apply: inNode(({ nodePublishVolume }, { host }) => ({
      nodePublishVolume: async (request, signal) => {
        const isMounted = await host.mounts.isMountPoint(request.targetPath, signal).catch(() => false)
        const answer = await nodePublishVolume(request, signal)
        if (isMounted) await host.mounts.bind({ source: request.stagingTargetPath, target: request.targetPath }, signal)
        return answer
      },
    })),
  },
  'unpublish-keeps-directory': {
    what: 'NodeUnpublishVolume leaves the directory at the target path',
    foundBy: ['honesty/unpublish/gone'],
    apply: inNode(({ nodeUnpublishVolume }, { host }) => ({
      nodeUnpublishVolume: async (request, signal) => {
        const wasThere = request.targetPath !== '' && (await host.files.exists(request.targetPath, signal))
        const answer = await nodeUnpublishVolume(request, signal)
        if (wasThere) await host.files.mkdirAll(request.targetPath, 0o750, signal)
        return answer
      },
    })),
  },
  'unpublish-does-nothing': {
    what: 'NodeUnpublishVolume answers OK and keeps the mount',
    foundBy: ['honesty/unpublish/gone'],
    apply: inNode(() => ({
      nodeUnpublishVolume: async ({ volumeId, targetPath }) => {
        if (volumeId === '' || targetPath === '') throw fail('INVALID_ARGUMENT', 'something is missing')
        return {}
      },
    })),
  },
  'unpublishes-once': {
    what: 'NodeUnpublishVolume of what is not published is an error',
    foundBy: ['honesty/unpublish/twice'],
    apply: inNode(({ nodeUnpublishVolume }, { host }) => ({
      nodeUnpublishVolume: async (request, signal) => {
        const isAsked = request.volumeId !== '' && request.targetPath !== ''
        if (isAsked && !(await host.files.exists(request.targetPath, signal)))
          throw fail('INTERNAL', 'umount: no mount point specified')
        return nodeUnpublishVolume(request, signal)
      },
    })),
  },
  'unstage-does-nothing': {
    what: 'NodeUnstageVolume answers OK and keeps the mount',
    foundBy: ['honesty/unstage/twice'],
    apply: inNode(() => ({
      nodeUnstageVolume: async ({ volumeId, stagingTargetPath }) => {
        if (volumeId === '' || stagingTargetPath === '') throw fail('INVALID_ARGUMENT', 'something is missing')
        return {}
      },
    })),
  },
  'stages-once': {
    what: 'NodeStageVolume of a staged volume is an error',
    foundBy: ['honesty/stage/twice'],
    apply: inNode(({ nodeStageVolume }, { host }) => ({
      nodeStageVolume: async (request, signal) => {
        const { stagingTargetPath: path } = request
        if (path !== '' && (await host.mounts.isMountPoint(path, signal).catch(() => false)))
          throw fail('INTERNAL', 'mount: already mounted')
        return nodeStageVolume(request, signal)
      },
    })),
  },
  'needs-no-stage': {
    what: 'NodePublishVolume without a staging path answers OK',
    foundBy: ['honesty/publish/unstaged'],
    apply: inNode(({ nodePublishVolume }) => ({
      nodePublishVolume: (request, signal) =>
        insteadOf('FAILED_PRECONDITION', nodePublishVolume(request, signal), () => ({})),
    })),
  },
  'uses-more-than-all': {
    what: 'more bytes of a volume are used than it has',
    foundBy: ['honesty/stats/answer'],
    apply: inNode(({ nodeGetVolumeStats }) => ({
      nodeGetVolumeStats: async (request, signal) => {
        const { usage = [] } = await nodeGetVolumeStats(request, signal)
        const total = usage[0]?.total ?? 0n
        return { usage: [{ total, used: total + 1n, available: 0n, unit: VolumeUsage_Unit.BYTES }] }
      },
    })),
  },
  'stats-anywhere': {
    what: 'usage is told for a path where the volume is not',
    foundBy: ['honesty/stats/unknown-path'],
    apply: inNode(({ nodeGetVolumeStats }, { records }) => ({
      nodeGetVolumeStats: (request, signal) => {
        const answer = nodeGetVolumeStats(request, signal)
        if (!records.volumeMap.has(request.volumeId)) return answer
        return insteadOf('NOT_FOUND', answer, () => ({ usage: [{ total: 1n, unit: VolumeUsage_Unit.BYTES }] }))
      },
    })),
  },
  'negative-limit': {
    what: 'fewer than no volumes fit on the node',
    foundBy: ['honesty/node-info/limit'],
    apply: inNode(({ nodeGetInfo }) => ({
      nodeGetInfo: async (request, signal) => ({ ...(await nodeGetInfo(request, signal)), maxVolumesPerNode: -1n }),
    })),
  },
  'topology-unclaimed': {
    what: 'the node tells a topology, and the driver does not claim to have one',
    foundBy: ['honesty/node-info/topology-unclaimed'],
    apply: inNode(({ nodeGetInfo }) => ({
      nodeGetInfo: async (request, signal) => {
        const { nodeId = '' } = await nodeGetInfo(request, signal)
        return { nodeId, accessibleTopology: { segments: { 'broken.example.com/zone': 'a' } } }
      },
    })),
  },
  'never-ready': {
    what: 'Probe says for ever that the driver is not ready',
    foundBy: ['honesty/identity/ready'],
    apply: inIdentity({ probe: async () => ({ ready: false }) }),
  },
  'probe-fails': {
    what: 'Probe is an error',
    foundBy: ['honesty/identity/probe'],
    apply: inIdentity({
      probe: async () => {
        throw fail('INTERNAL', 'no backend')
      },
    }),
  },
  'bad-name': {
    what: 'the name of the driver has a space, and there is no version',
    foundBy: ['honesty/identity/name', 'honesty/identity/version'],
    apply: inIdentity({ getPluginInfo: async () => ({ name: 'my driver' }) }),
  },
}
