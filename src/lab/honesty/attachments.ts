// Does the controller publish and unpublish as it says?
import type { Check } from '../check.ts'
import { CsiError } from '../../csi/codes.ts'
import { answered, must, refused } from '../finding.ts'
import { attach, attachRequest, someVolume, tryAttach } from '../scene.ts'

const honesty = {
  suite: 'honesty',
  needs: { controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'] },
} as const

export const attachmentChecks: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/attach/twice',
    title: 'ControllerPublishVolume twice succeeds twice, with one answer',
    call: 'ControllerPublishVolume',
    says: 'this operation MUST be idempotent',
    async run(lab) {
      const volume = await someVolume(lab)
      const { publishContext } = await attach(lab, volume)
      const again = await answered('ControllerPublishVolume again', tryAttach(lab, attachRequest(lab, volume)))
      must(
        JSON.stringify(again) === JSON.stringify(publishContext),
        `the same request gave two publish contexts, with ${keys(publishContext)} and ${keys(again)}`,
      )
    },
  },
  {
    ...honesty,
    needs: { controller: [...honesty.needs.controller, 'PUBLISH_READONLY'] },
    id: 'honesty/attach/other-way',
    title: 'a volume that is published for writing is not published for reading at the same time',
    call: 'ControllerPublishVolume',
    says: 'a volume that is published to the node in an incompatible way is answered with ALREADY_EXISTS',
    async run(lab) {
      const volume = await someVolume(lab)
      await attach(lab, volume)
      const other = tryAttach(lab, { ...attachRequest(lab, volume), readonly: true })
      await refused('ControllerPublishVolume again with readonly', other, 'ALREADY_EXISTS')
    },
  },
  {
    ...honesty,
    id: 'honesty/detach/twice',
    title: 'ControllerUnpublishVolume twice succeeds twice',
    call: 'ControllerUnpublishVolume',
    says: 'this operation MUST be idempotent',
    async run(lab) {
      const volume = await someVolume(lab)
      await attach(lab, volume)
      const request = { volumeId: volume.volumeId, nodeId: lab.facts.nodeId ?? '' }
      const secrets = { ...lab.recipe.secrets }
      for (const what of ['ControllerUnpublishVolume', 'ControllerUnpublishVolume again'])
        await answered(what, lab.controller.controllerUnpublishVolume({ ...request, secrets }))
    },
  },
  {
    ...honesty,
    id: 'honesty/detach/unknown-volume',
    title: 'ControllerUnpublishVolume of a volume that does not exist is OK or NOT_FOUND',
    call: 'ControllerUnpublishVolume',
    says: 'a volume that does not exist is published nowhere: 0 OK, or NOT_FOUND',
    async run(lab) {
      const request = { volumeId: lab.named('no-such-id'), nodeId: lab.facts.nodeId ?? '' }
      try {
        await lab.controller.controllerUnpublishVolume(request)
      } catch (error) {
        if (error instanceof CsiError && error.status === 'NOT_FOUND') return
        await answered('ControllerUnpublishVolume of a volume that does not exist', Promise.reject(error))
      }
    },
  },
]

const keys = (context: Readonly<Record<string, string>>) => Object.keys(context).join(', ') || 'nothing'
