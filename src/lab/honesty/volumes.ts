// Does the driver make, grow and remove volumes as it says? Names, ids, sizes, and the same call twice.
import type { Check, Needs } from '../check.ts'
import { answered, must, refused } from '../finding.ts'
import type { Lab } from '../lab.ts'
import { createVolume, mountCapability, someVolume, volumeRequest } from '../scene.ts'

const needs: Needs = { controller: ['CREATE_DELETE_VOLUME'] }
const growing: Needs = { controller: ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME'] }
const honesty = { suite: 'honesty', needs } as const

/** The longest name that the specification allows. */
const longestName = 128

const creating: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/create-volume/answer',
    title: 'a new volume has an id and is as large as asked',
    call: 'CreateVolume',
    says: 'volume_id is REQUIRED, at most 128 bytes; capacity_bytes lies within the capacity_range, or is 0 for unknown',
    async run(lab) {
      const { volumeId, capacityBytes } = await someVolume(lab)
      must(volumeId !== '', 'CreateVolume answered OK without a volume id')
      const bytes = Buffer.byteLength(volumeId)
      must(bytes <= 128, `the volume id is ${bytes} bytes long; 128 are allowed`)
      must(!/\p{Cc}/u.test(volumeId), `the volume id ${JSON.stringify(volumeId)} has control characters`)
      const { sizeBytes } = lab.recipe
      const fits = capacityBytes === 0n || capacityBytes >= sizeBytes
      must(fits, `${sizeBytes} bytes were required; the volume has ${capacityBytes}`)
    },
  },
  {
    ...honesty,
    id: 'honesty/create-volume/limit',
    title: 'a new volume is not larger than its limit',
    call: 'CreateVolume',
    says: 'capacity_bytes of the volume MUST NOT exceed limit_bytes',
    async run(lab) {
      const limitBytes = lab.recipe.sizeBytes
      const request = { ...volumeRequest(lab, 'volume'), capacityRange: { requiredBytes: limitBytes, limitBytes } }
      const { capacityBytes } = await answered('CreateVolume with a limit', createVolume(lab, request))
      must(capacityBytes <= limitBytes, `the limit was ${limitBytes} bytes; the volume has ${capacityBytes}`)
    },
  },
  {
    ...honesty,
    id: 'honesty/create-volume/twice',
    title: 'CreateVolume twice gives one volume',
    call: 'CreateVolume',
    says: 'this operation MUST be idempotent: a volume of that name that fits is answered with 0 OK',
    async run(lab) {
      const first = await someVolume(lab)
      const again = await answered('CreateVolume again', createVolume(lab, volumeRequest(lab, 'volume')))
      must(
        first.volumeId === again.volumeId,
        `the same request gave two volumes: ${first.volumeId} and ${again.volumeId}`,
      )
    },
  },
  {
    ...honesty,
    id: 'honesty/create-volume/other-size',
    title: 'a name that is taken by a smaller volume is refused',
    call: 'CreateVolume',
    says: 'a volume of that name that does not fit is answered with ALREADY_EXISTS',
    async run(lab) {
      await someVolume(lab)
      const capacityRange = { requiredBytes: lab.recipe.sizeBytes * 2n }
      const other = createVolume(lab, { ...volumeRequest(lab, 'volume'), capacityRange })
      await refused('CreateVolume with a taken name and twice the size', other, 'ALREADY_EXISTS')
    },
  },
]

const naming: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/create-volume/long-names',
    title: 'names of 128 bytes are taken, and told apart to their end',
    call: 'CreateVolume',
    says: 'name is a string of at most 128 bytes',
    async run(lab) {
      const names = ['a', 'b'].map((end) => `${lab.named('long').padEnd(longestName - 1, 'x')}${end}`)
      const ids: string[] = []
      for (const name of names) {
        const asked = createVolume(lab, { ...volumeRequest(lab, 'long'), name })
        ids.push((await answered(`CreateVolume with a name of ${longestName} bytes`, asked)).volumeId)
      }
      must(ids[0] !== ids[1], `two names that differ in their last byte gave one volume, ${ids[0]}`)
    },
  },
  {
    ...honesty,
    id: 'honesty/create-volume/characters',
    title: 'a name may have spaces, slashes, dots, quotes and letters of any language',
    call: 'CreateVolume',
    says: 'name may have any Unicode characters but control characters',
    async run(lab) {
      const name = `${lab.named('any')} ../ü'"$(x);名`
      const volume = await answered(
        `CreateVolume with the name ${name}`,
        createVolume(lab, { ...volumeRequest(lab, 'any'), name }),
      )
      must(volume.volumeId !== '', 'CreateVolume answered OK without a volume id')
    },
  },
  {
    ...honesty,
    id: 'honesty/create-volume/huge',
    title: 'a size that no storage has is refused, or kept',
    call: 'CreateVolume',
    says: 'a capacity_range that the plugin does not support is answered with OUT_OF_RANGE',
    async run(lab) {
      const requiredBytes = 1n << 62n
      const what = 'CreateVolume of 4 exbibytes'
      const asked = createVolume(lab, { ...volumeRequest(lab, 'huge'), capacityRange: { requiredBytes } })
      const made = await asked.then(
        (volume) => volume,
        () => undefined,
      )
      if (made === undefined) return refused(what, asked, 'OUT_OF_RANGE', 'RESOURCE_EXHAUSTED')
      const fits = made.capacityBytes === 0n || made.capacityBytes >= requiredBytes
      must(fits, `${what} answered OK and made ${made.capacityBytes} bytes`)
    },
  },
]

const removing: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/delete-volume/unknown-volume',
    title: 'deleting a volume that does not exist succeeds',
    call: 'DeleteVolume',
    says: 'this operation MUST be idempotent: a volume that does not exist is answered with 0 OK',
    async run(lab) {
      const asked = lab.controller.deleteVolume({ volumeId: lab.named('no-such-id') })
      await answered('DeleteVolume of a volume that does not exist', asked)
    },
  },
  {
    ...honesty,
    id: 'honesty/delete-volume/twice',
    title: 'DeleteVolume twice succeeds twice',
    call: 'DeleteVolume',
    says: 'this operation MUST be idempotent',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      await remove(lab, volumeId)
      await answered('DeleteVolume again', lab.controller.deleteVolume({ volumeId }))
    },
  },
  {
    ...honesty,
    needs: { controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES'] },
    id: 'honesty/delete-volume/gone',
    title: 'a deleted volume is not listed any longer',
    call: 'DeleteVolume',
    says: 'after 0 OK the volume does not exist',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      await remove(lab, volumeId)
      const { entries } = await answered('ListVolumes', lab.controller.listVolumes({}))
      must(!entries.some(({ volume }) => volume?.volumeId === volumeId), `${volumeId} was deleted and is still listed`)
    },
  },
  {
    ...honesty,
    id: 'honesty/delete-volume/name-free',
    title: 'the name of a deleted volume can be used again, for another size',
    call: 'DeleteVolume',
    says: 'after 0 OK the volume does not exist, and CreateVolume of that name makes a new one',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      await remove(lab, volumeId)
      const capacityRange = { requiredBytes: lab.recipe.sizeBytes * 2n }
      const asked = createVolume(lab, { ...volumeRequest(lab, 'volume'), capacityRange })
      await answered('CreateVolume under the name of a deleted volume', asked)
    },
  },
]

async function remove(lab: Lab, volumeId: string): Promise<void> {
  const secrets = { ...lab.recipe.secrets }
  await answered('DeleteVolume', lab.controller.deleteVolume({ volumeId, secrets }))
}

const others: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/validate/confirmed',
    title: 'the capabilities that a volume was made with are confirmed',
    call: 'ValidateVolumeCapabilities',
    says: 'confirmed is set if all capabilities are supported, and repeats them',
    async run(lab) {
      const { volumeId, volumeContext } = await someVolume(lab)
      const request = { volumeId, volumeContext, volumeCapabilities: [mountCapability(lab)] }
      const { confirmed, message } = await answered(
        'ValidateVolumeCapabilities',
        lab.controller.validateVolumeCapabilities({ ...request, parameters: { ...lab.recipe.parameters } }),
      )
      must(confirmed !== undefined, `the volume was made with this capability, and it is not confirmed: ${message}`)
      must(confirmed.volumeCapabilities.length > 0, 'confirmed does not say which capabilities')
    },
  },
  {
    ...honesty,
    needs: { controller: ['CREATE_DELETE_VOLUME', 'GET_VOLUME'] },
    id: 'honesty/get-volume/answer',
    title: 'ControllerGetVolume finds a volume, until it is deleted',
    call: 'ControllerGetVolume',
    says: 'the answer is the volume; NOT_FOUND if it does not exist',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const { volume } = await answered('ControllerGetVolume', lab.controller.controllerGetVolume({ volumeId }))
      must(
        volume?.volumeId === volumeId,
        `ControllerGetVolume of ${volumeId} answered ${volume?.volumeId ?? 'nothing'}`,
      )
      await remove(lab, volumeId)
      const asked = lab.controller.controllerGetVolume({ volumeId })
      await refused('ControllerGetVolume of a deleted volume', asked, 'NOT_FOUND')
    },
  },
  {
    ...honesty,
    needs: growing,
    id: 'honesty/expand/answer',
    title: 'an expanded volume is as large as asked, and the call can be repeated',
    call: 'ControllerExpandVolume',
    says: 'capacity_bytes is the capacity of the volume now; a volume that is large enough is answered with 0 OK',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const requiredBytes = lab.recipe.sizeBytes * 2n
      const request = { volumeId, capacityRange: { requiredBytes }, volumeCapability: mountCapability(lab) }
      for (const what of ['ControllerExpandVolume', 'ControllerExpandVolume again']) {
        const { capacityBytes } = await answered(what, lab.controller.controllerExpandVolume(request))
        must(capacityBytes >= requiredBytes, `${what} to ${requiredBytes} bytes answered OK and ${capacityBytes}`)
      }
    },
  },
  {
    ...honesty,
    needs: { controller: ['GET_CAPACITY'] },
    id: 'honesty/get-capacity/answer',
    title: 'the free capacity is not negative',
    call: 'GetCapacity',
    says: 'available_capacity is REQUIRED and MUST NOT be negative',
    async run(lab) {
      const request = { parameters: { ...lab.recipe.parameters }, volumeCapabilities: [mountCapability(lab)] }
      const { availableCapacity } = await answered('GetCapacity', lab.controller.getCapacity(request))
      must(availableCapacity >= 0n, `GetCapacity answered ${availableCapacity} bytes`)
    },
  },
]

export const volumeChecks: readonly Check[] = [...creating, ...naming, ...removing, ...others]
