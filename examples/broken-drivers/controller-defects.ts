// What can be wrong with a controller? One defect each, found by the checks that it names.
import { ControllerServiceCapability_RPC_Type as Rpc } from '../../src/csi/generated/csi_pb.ts'
import type { Defect } from './defect.ts'
import { fail, inController, insteadOf } from './defect.ts'

const createDefects: Readonly<Record<string, Defect>> = {
  'new-volume-each-time': {
    what: 'CreateVolume makes another volume for the same name',
    foundBy: ['honesty/create-volume/twice', 'honesty/create-volume/other-size', 'honesty/at-once/create-volume'],
    apply: (driver) => {
      let count = 0
      return inController(({ createVolume }) => ({
        createVolume: (request, signal) => {
          const name = request.name === '' ? '' : `${request.name} ${count++}`
          return createVolume({ ...request, name }, signal)
        },
      }))(driver)
    },
  },
  'ignores-conflict': {
    what: 'CreateVolume answers OK for a name that is taken by a smaller volume',
    foundBy: ['honesty/create-volume/other-size'],
    apply: inController(({ createVolume }) => ({
      createVolume: (request, signal) => {
        const { capacityRange: _size, ...rest } = request
        return insteadOf('ALREADY_EXISTS', createVolume(request, signal), () => createVolume(rest, signal))
      },
    })),
  },
  'small-volumes': {
    what: 'a new volume has half the size that was required',
    foundBy: ['honesty/create-volume/answer', 'life/snapshot/larger'],
    apply: inController(({ createVolume }) => ({
      createVolume: async (request, signal) => {
        const { volume } = await createVolume(request, signal)
        return { volume: { ...volume, capacityBytes: (volume?.capacityBytes ?? 0n) / 2n } }
      },
    })),
  },
  'ignores-limit': {
    what: 'a new volume is larger than its limit',
    foundBy: ['honesty/create-volume/limit'],
    apply: inController(({ createVolume }) => ({
      createVolume: async (request, signal) => {
        const { volume } = await createVolume(request, signal)
        return { volume: { ...volume, capacityBytes: (volume?.capacityBytes ?? 0n) * 2n } }
      },
    })),
  },
  'takes-empty-names': {
    what: 'CreateVolume without a name makes a volume',
    foundBy: ['honesty/create-volume/no-name'],
    apply: inController(({ createVolume }) => ({
      createVolume: (request, signal) => createVolume({ ...request, name: request.name || 'unnamed' }, signal),
    })),
  },
  'cuts-names': {
    what: 'names are told apart by their first 64 characters only',
    foundBy: ['honesty/create-volume/long-names'],
    apply: inController(({ createVolume }) => ({
      createVolume: (request, signal) => createVolume({ ...request, name: request.name.slice(0, 64) }, signal),
    })),
  },
  'names-as-paths': {
    what: 'a name with a slash is refused, for it becomes a path',
    foundBy: ['honesty/create-volume/characters'],
    apply: inController(({ createVolume }) => ({
      createVolume: async (request, signal) => {
        if (request.name.includes('/')) throw fail('INVALID_ARGUMENT', 'the name has a slash')
        return createVolume(request, signal)
      },
    })),
  },
  'forgets-sources': {
    what: 'CreateVolume from a snapshot that does not exist makes an empty volume',
    foundBy: ['honesty/create-volume/unknown-snapshot'],
    apply: inController(({ createVolume }) => ({
      createVolume: (request, signal) => {
        const { volumeContentSource, ...rest } = request
        if (volumeContentSource?.type.case !== 'snapshot') return createVolume(request, signal)
        return insteadOf('NOT_FOUND', createVolume(request, signal), () => createVolume(rest, signal))
      },
    })),
  },
  'two-at-once': {
    what: 'two callers with one name at the same time get two volumes',
    foundBy: ['honesty/at-once/create-volume'],
    apply: (driver) => {
      const busy = new Set<string>()
      return inController(({ createVolume }) => ({
        async createVolume(request, signal) {
          const name = busy.has(request.name) ? `${request.name} ${busy.size}` : request.name
          busy.add(name)
          try {
            return await createVolume({ ...request, name }, signal)
          } finally {
            busy.delete(name)
          }
        },
      }))(driver)
    },
  },
  'tells-secrets': {
    what: 'the secrets of CreateVolume are in the volume context',
    foundBy: ['honesty/secrets/create-volume'],
    apply: inController(({ createVolume }) => ({
      createVolume: async (request, signal) => {
        const { volume } = await createVolume(request, signal)
        return { volume: { ...volume, volumeContext: { ...volume?.volumeContext, ...request.secrets } } }
      },
    })),
  },
}

const deleteDefects: Readonly<Record<string, Defect>> = {
  'delete-not-found': {
    what: 'DeleteVolume of a volume that does not exist is NOT_FOUND',
    foundBy: ['honesty/delete-volume/unknown-volume', 'honesty/delete-volume/twice', 'honesty/at-once/delete-volume'],
    apply: inController(({ deleteVolume }, { records }) => ({
      deleteVolume: async (request, signal) => {
        if (request.volumeId !== '' && !records.volumeMap.has(request.volumeId))
          throw fail('NOT_FOUND', 'there is no such volume')
        return deleteVolume(request, signal)
      },
    })),
  },
  'delete-does-nothing': {
    what: 'DeleteVolume answers OK and keeps the volume',
    foundBy: [
      'honesty/delete-volume/gone',
      'honesty/delete-volume/name-free',
      'honesty/get-volume/answer',
      'life/data/deleted',
    ],
    apply: inController(() => ({
      deleteVolume: async ({ volumeId }) => {
        if (volumeId === '') throw fail('INVALID_ARGUMENT', 'volume id missing')
        return {}
      },
    })),
  },
  'internal-for-missing-id': {
    what: 'DeleteVolume without a volume id is an INTERNAL error',
    foundBy: ['honesty/delete-volume/no-id'],
    apply: inController(({ deleteVolume }) => ({
      deleteVolume: async (request, signal) => {
        if (request.volumeId === '') throw fail('INTERNAL', 'index out of range')
        return deleteVolume(request, signal)
      },
    })),
  },
  'expand-says-ok': {
    what: 'ControllerExpandVolume answers OK and the old size',
    foundBy: ['honesty/expand/answer', 'honesty/node-expand/answer', 'life/grow/unmounted', 'life/grow/mounted'],
    apply: inController(({ controllerExpandVolume }, { records }) => ({
      controllerExpandVolume: async (request, signal) => {
        const present = records.volumeMap.get(request.volumeId)
        if (!present || !request.capacityRange) return controllerExpandVolume(request, signal)
        return { capacityBytes: present.capacityBytes, nodeExpansionRequired: true }
      },
    })),
  },
  'expand-unknown-volume': {
    what: 'ControllerExpandVolume of a volume that does not exist is an INTERNAL error',
    foundBy: ['honesty/expand/unknown-volume'],
    apply: inController(({ controllerExpandVolume }) => ({
      controllerExpandVolume: (request, signal) =>
        insteadOf('NOT_FOUND', controllerExpandVolume(request, signal), () => {
          throw fail('INTERNAL', 'lookup failed')
        }),
    })),
  },
  'confirms-anything': {
    what: 'capabilities of a volume that does not exist are confirmed',
    foundBy: ['honesty/validate/unknown-volume'],
    apply: inController(({ validateVolumeCapabilities }) => ({
      validateVolumeCapabilities: (request, signal) =>
        insteadOf('NOT_FOUND', validateVolumeCapabilities(request, signal), () => ({
          confirmed: { volumeCapabilities: request.volumeCapabilities },
        })),
    })),
  },
}

const listDefects: Readonly<Record<string, Defect>> = {
  'first-page-for-ever': {
    what: 'ListVolumes starts again at every token',
    foundBy: ['honesty/list-volumes/pages', 'honesty/list-volumes/bad-token'],
    apply: inController(({ listVolumes }) => ({
      listVolumes: (request, signal) => listVolumes({ ...request, startingToken: '' }, signal),
    })),
  },
  'pages-too-long': {
    what: 'ListVolumes answers more entries than asked for',
    foundBy: ['honesty/list-volumes/pages'],
    apply: inController(({ listVolumes }) => ({
      listVolumes: (request, signal) => listVolumes({ ...request, maxEntries: 0 }, signal),
    })),
  },
  'any-token': {
    what: 'a token that was never given is the end of the list',
    foundBy: ['honesty/list-volumes/bad-token'],
    apply: inController(({ listVolumes }) => ({
      listVolumes: (request, signal) => insteadOf('ABORTED', listVolumes(request, signal), () => ({ entries: [] })),
    })),
  },
  'hides-nodes': {
    what: 'LIST_VOLUMES_PUBLISHED_NODES is claimed, and no node is told',
    foundBy: ['honesty/list-volumes/published-nodes'],
    apply: inController(({ listVolumes }) => ({
      listVolumes: async (request, signal) => {
        const { entries = [], nextToken = '' } = await listVolumes(request, signal)
        return { entries: entries.map(({ volume }) => (volume ? { volume } : {})), nextToken }
      },
    })),
  },
  'claims-too-little': {
    what: 'volumes can be expanded, and EXPAND_VOLUME is not claimed',
    foundBy: ['honesty/unclaimed/expand-volume'],
    apply: inController(({ controllerGetCapabilities }) => ({
      controllerGetCapabilities: async (request, signal) => {
        const { capabilities = [] } = await controllerGetCapabilities(request, signal)
        const isExpansion = (each: (typeof capabilities)[number]) =>
          each.type?.case === 'rpc' && each.type.value.type === Rpc.EXPAND_VOLUME
        return { capabilities: capabilities.filter((each) => !isExpansion(each)) }
      },
    })),
  },
  'negative-capacity': {
    what: 'GetCapacity answers less than nothing',
    foundBy: ['honesty/get-capacity/answers', 'honesty/get-capacity/answer'],
    apply: inController(() => ({ getCapacity: async () => ({ availableCapacity: -1n }) })),
  },
}

const snapshotDefects: Readonly<Record<string, Defect>> = {
  'snapshot-of-any-volume': {
    what: 'a snapshot name that is taken by another volume gets that snapshot',
    foundBy: ['honesty/create-snapshot/other-source'],
    apply: inController(({ createSnapshot }, { records }) => ({
      createSnapshot: (request, signal) =>
        insteadOf('ALREADY_EXISTS', createSnapshot(request, signal), () => {
          const taken = [...records.snapshotMap.values()].find(({ name }) => name === request.name)
          return createSnapshot({ ...request, sourceVolumeId: taken?.sourceVolumeId ?? '' }, signal)
        }),
    })),
  },
  'snapshot-without-time': {
    what: 'a snapshot has no creation time',
    foundBy: ['honesty/create-snapshot/answer'],
    apply: inController(({ createSnapshot }) => ({
      createSnapshot: async (request, signal) => {
        const { snapshot } = await createSnapshot(request, signal)
        const { creationTime: _time, ...rest } = snapshot ?? {}
        return { snapshot: rest }
      },
    })),
  },
  'snapshot-filter-ignored': {
    what: 'ListSnapshots answers all snapshots, whatever was asked for',
    foundBy: ['honesty/list-snapshots/by-id', 'honesty/list-snapshots/by-source'],
    apply: inController(({ listSnapshots }) => ({
      listSnapshots: (request, signal) => listSnapshots({ ...request, snapshotId: '', sourceVolumeId: '' }, signal),
    })),
  },
  'snapshot-list-not-found': {
    what: 'ListSnapshots of an unknown id is NOT_FOUND instead of empty',
    foundBy: ['honesty/list-snapshots/by-id'],
    apply: inController(({ listSnapshots }, { records }) => ({
      listSnapshots: async (request, signal) => {
        if (request.snapshotId !== '' && !records.snapshotMap.has(request.snapshotId))
          throw fail('NOT_FOUND', 'there is no such snapshot')
        return listSnapshots(request, signal)
      },
    })),
  },
  'hangs-on-unknown-snapshot': {
    what: 'DeleteSnapshot of a snapshot that does not exist never answers',
    foundBy: ['honesty/delete-snapshot/unknown-snapshot', 'honesty/delete-snapshot/twice'],
    apply: inController(({ deleteSnapshot }, { records }) => ({
      deleteSnapshot: async (request, signal) => {
        if (request.snapshotId === '' || records.snapshotMap.has(request.snapshotId))
          return deleteSnapshot(request, signal)
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        })
      },
    })),
  },
}

const attachDefects: Readonly<Record<string, Defect>> = {
  'attaches-anywhere': {
    what: 'ControllerPublishVolume to a node that does not exist answers OK',
    foundBy: ['honesty/attach/unknown-node'],
    apply: inController(({ controllerPublishVolume }, { records }) => ({
      controllerPublishVolume: async (request, signal) => {
        const exists = records.volumeMap.has(request.volumeId)
        if (exists && request.nodeId !== '' && !records.nodeIds.has(request.nodeId)) return {}
        return controllerPublishVolume(request, signal)
      },
    })),
  },
  'attaches-once': {
    what: 'ControllerPublishVolume of a published volume is FAILED_PRECONDITION',
    foundBy: ['honesty/attach/twice', 'honesty/attach/other-way'],
    apply: inController(({ controllerPublishVolume }, { records }) => ({
      controllerPublishVolume: async (request, signal) => {
        if (records.volumeMap.get(request.volumeId)?.attachments[request.nodeId])
          throw fail('FAILED_PRECONDITION', 'it is published already')
        return controllerPublishVolume(request, signal)
      },
    })),
  },
  'detaches-once': {
    what: 'ControllerUnpublishVolume of a volume that is not published is an error',
    foundBy: ['honesty/detach/twice'],
    apply: inController(({ controllerUnpublishVolume }, { records }) => ({
      controllerUnpublishVolume: async (request, signal) => {
        const present = records.volumeMap.get(request.volumeId)
        if (present && Object.keys(present.attachments).length === 0)
          throw fail('FAILED_PRECONDITION', 'it is not published')
        return controllerUnpublishVolume(request, signal)
      },
    })),
  },
  'mixes-modes': {
    what: 'a volume that is published for writing is published for reading too',
    foundBy: ['honesty/attach/other-way'],
    apply: inController(({ controllerPublishVolume }) => ({
      controllerPublishVolume: (request, signal) =>
        insteadOf('ALREADY_EXISTS', controllerPublishVolume(request, signal), () => ({})),
    })),
  },
}

export const controllerDefects: Readonly<Record<string, Defect>> = {
  ...createDefects,
  ...deleteDefects,
  ...listDefects,
  ...snapshotDefects,
  ...attachDefects,
}
