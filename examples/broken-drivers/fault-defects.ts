// What goes wrong only when something else does? Each call works by itself, and again; not when a caller gives up or comes twice.
import type { Defect } from './defect.ts'
import { fail, inController, inNode } from './defect.ts'

const never = new AbortController().signal

export const faultDefects: Readonly<Record<string, Defect>> = {
  'leaks-when-given-up': {
    what: 'a CreateVolume whose caller gives up leaves a volume that nobody knows',
    foundBy: ['faults/given-up/create-volume'],
    apply: inController(({ createVolume }) => ({
      createVolume: async (request, signal) => {
        await Promise.resolve()
        if (signal.aborted && request.name !== '')
          await createVolume({ ...request, name: `${request.name} half` }, never)
        return createVolume(request, signal)
      },
    })),
  },
  'stuck-when-given-up': {
    what: 'a NodePublishVolume whose caller gave up cannot be repeated',
    foundBy: ['faults/given-up/publish'],
    apply: (driver) => {
      const stuck = new Set<string>()
      return inNode(({ nodePublishVolume }) => ({
        nodePublishVolume: async (request, signal) => {
          if (stuck.has(request.volumeId)) throw fail('INTERNAL', 'an operation is already in progress')
          await Promise.resolve()
          if (signal.aborted) stuck.add(request.volumeId)
          return nodePublishVolume(request, signal)
        },
      }))(driver)
    },
  },
  'one-caller-only': {
    what: 'a DeleteSnapshot while another one runs is an INTERNAL error',
    foundBy: ['faults/at-once/delete-snapshot'],
    apply: (driver) => {
      const busy = new Set<string>()
      return inController(({ deleteSnapshot }) => ({
        deleteSnapshot: async (request, signal) => {
          if (busy.has(request.snapshotId)) throw fail('INTERNAL', 'the snapshot is busy')
          busy.add(request.snapshotId)
          try {
            return await deleteSnapshot(request, signal)
          } finally {
            busy.delete(request.snapshotId)
          }
        },
      }))(driver)
    },
  },
  'makes-target-again': {
    what: 'a NodeUnpublishVolume that is repeated makes the target path again',
    foundBy: ['faults/answer-lost/unpublish', 'faults/twice/unpublish', 'faults/at-once/unpublish'],
    apply: (driver) => {
      const done = new Set<string>()
      const { files } = driver.host
      return inNode(({ nodeUnpublishVolume }) => ({
        nodeUnpublishVolume: async (request, signal) => {
          const { targetPath } = request
          const answer = await nodeUnpublishVolume(request, signal)
          if (done.has(targetPath)) await files.mkdirAll(targetPath, 0o750, never)
          done.add(targetPath)
          return answer
        },
      }))(driver)
    },
  },
}
