// What can happen to data? Lost, changed, shared with others, or not protected: all calls answer as they should.
import type { Defect } from './defect.ts'
import { inController, inNode } from './defect.ts'

const mountedTwice = [
  'life/data/mounted-again',
  'life/data/read-only',
  'life/grow/unmounted',
  'life/snapshot/restored',
  'life/snapshot/larger',
  'life/snapshot/without-source',
  'life/clone/own-data',
]

export const dataDefects: Readonly<Record<string, Defect>> = {
  'formats-each-time': {
    what: 'NodeStageVolume formats a volume that holds data',
    foundBy: mountedTwice,
    apply: inNode(({ nodeStageVolume }, { host, path, records }) => ({
      nodeStageVolume: async (request, signal) => {
        const { volumeId, stagingTargetPath: at } = request
        const isStaged = at !== '' && (await host.mounts.isMountPoint(at, signal).catch(() => false))
        if (!isStaged && records.volumeMap.has(volumeId)) {
          await host.files.removeTree(path(volumeId), signal)
          await host.files.mkdirAll(path(volumeId), 0o755, signal)
        }
        return nodeStageVolume(request, signal)
      },
    })),
  },
  'writes-read-only': {
    what: 'a volume that is published read-only can be written',
    foundBy: ['life/data/read-only'],
    apply: inNode(({ nodePublishVolume }) => ({
      nodePublishVolume: (request, signal) => nodePublishVolume({ ...request, readonly: false }, signal),
    })),
  },
  'keeps-deleted-data': {
    what: 'a new volume with the name of a deleted one holds its data',
    foundBy: ['life/data/deleted'],
    apply: inController(({ deleteVolume }, { host, path }) => ({
      deleteVolume: async (request, signal) => {
        const old = request.volumeId === '' ? '' : path(request.volumeId)
        const isThere = old !== '' && (await host.files.exists(old, signal))
        const hadData = isThere && (await host.files.readDir(old, signal)).length > 0
        const answer = await deleteVolume(request, signal)
        if (!hadData) return answer
        await host.files.mkdirAll(old, 0o755, signal)
        await host.files.writeFile(`${old}/large.bin`, 'old', { mode: 0o644 }, signal)
        return answer
      },
    })),
  },
  'grows-by-replacing': {
    what: 'a volume that has grown is empty',
    foundBy: ['life/grow/unmounted', 'life/grow/mounted'],
    apply: inController(({ controllerExpandVolume }, { host, path, records }) => ({
      controllerExpandVolume: async (request, signal) => {
        const answer = await controllerExpandVolume(request, signal)
        if (!records.volumeMap.has(request.volumeId)) return answer
        for (const name of await host.files.readDir(path(request.volumeId), signal))
          await host.files.removeTree(`${path(request.volumeId)}/${name}`, signal)
        return answer
      },
    })),
  },
  'restores-nothing': {
    what: 'a volume from a snapshot is empty',
    foundBy: ['life/snapshot/restored', 'life/snapshot/larger', 'life/snapshot/without-source'],
    apply: inController(({ createVolume }, { host, path }) => ({
      createVolume: async (request, signal) => {
        const answer = await createVolume(request, signal)
        const id = answer.volume?.volumeId ?? ''
        if (request.volumeContentSource?.type.case !== 'snapshot') return answer
        for (const name of await host.files.readDir(path(id), signal))
          await host.files.removeTree(`${path(id)}/${name}`, signal)
        return answer
      },
    })),
  },
  'snapshot-moves-on': {
    what: 'a snapshot shows what its source holds now, not what it held then',
    foundBy: ['life/snapshot/restored'],
    apply: inController(({ createVolume }, { host, path, records }) => ({
      createVolume: async (request, signal) => {
        const answer = await createVolume(request, signal)
        const type = request.volumeContentSource?.type
        const snapshot = type?.case === 'snapshot' ? records.snapshotMap.get(type.value.snapshotId) : undefined
        const now = snapshot && `${path(snapshot.sourceVolumeId)}/large.bin`
        if (now === undefined || !(await host.files.exists(now, signal))) return answer
        const data = await host.files.readFile(now, signal)
        const copy = `${path(answer.volume?.volumeId ?? '')}/large.bin`
        await host.files.writeFile(copy, data, { mode: 0o644 }, signal)
        return answer
      },
    })),
  },
  'snapshot-needs-source': {
    what: 'the data of a snapshot goes with its source',
    foundBy: ['life/snapshot/without-source'],
    apply: inController(({ deleteVolume }, { host, path, records }) => ({
      deleteVolume: async (request, signal) => {
        for (const { id, sourceVolumeId } of records.snapshotMap.values())
          if (sourceVolumeId === request.volumeId)
            for (const name of await host.files.readDir(path(id), signal))
              await host.files.removeTree(`${path(id)}/${name}`, signal)
        return deleteVolume(request, signal)
      },
    })),
  },
  'clone-shares-data': {
    what: 'what is written to a clone is written to its source',
    foundBy: ['life/clone/own-data'],
    apply: inNode(({ nodeStageVolume }, { host, path, records }) => ({
      nodeStageVolume: async (request, signal) => {
        const { volumeId, stagingTargetPath: target } = request
        const source = records.volumeMap.get(volumeId)?.source
        if (source?.kind === 'volume' && target !== '')
          await host.mounts.bind({ source: path(source.id), target }, signal)
        return nodeStageVolume(request, signal)
      },
    })),
  },
  'mixes-volumes': {
    what: 'two volumes that are staged at the same time show the same data',
    foundBy: ['life/data/many', 'life/snapshot/restored', 'life/clone/own-data'],
    apply: (driver) => {
      const staged = new Set<string>()
      const { host, path, records } = driver
      return inNode(({ nodeStageVolume, nodeUnstageVolume }) => ({
        nodeStageVolume: async (request, signal) => {
          const { volumeId, stagingTargetPath: target, volumeCapability } = request
          const isGood = records.volumeMap.has(volumeId) && target !== '' && volumeCapability !== undefined
          const other = [...staged].find((id) => id !== volumeId && records.volumeMap.has(id))
          if (isGood) staged.add(volumeId)
          if (isGood && other !== undefined) await host.mounts.bind({ source: path(other), target }, signal)
          return nodeStageVolume(request, signal)
        },
        nodeUnstageVolume: async (request, signal) => {
          staged.delete(request.volumeId)
          return nodeUnstageVolume(request, signal)
        },
      }))(driver)
    },
  },
}
