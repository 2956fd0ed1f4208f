// Does the driver keep secrets to itself? A word that nobody else knows goes in; no answer and no error may hold it.
import { CsiError } from '../../csi/codes.ts'
import type { Check } from '../check.ts'
import { must } from '../finding.ts'
import { createVolume, volumeRequest } from '../scene.ts'

export const secretChecks: readonly Check[] = [
  {
    id: 'honesty/secrets/create-volume',
    suite: 'honesty',
    title: 'a secret comes back neither in a volume nor in an error',
    call: 'CreateVolume',
    says: 'values of fields marked csi_secret MUST NOT be put into logs or messages',
    needs: { controller: ['CREATE_DELETE_VOLUME'] },
    async run(lab) {
      const canary = lab.named('canary')
      const secrets = { ...lab.recipe.secrets, 'hawser-lab': canary }
      const good = { ...volumeRequest(lab, 'volume'), secrets }
      const bad = { ...good, name: lab.named('bad'), capacityRange: { requiredBytes: -1n } }
      for (const request of [good, bad]) {
        const words = await createVolume(lab, request).then(
          ({ volumeId, volumeContext }) => JSON.stringify([volumeId, volumeContext]),
          (error: unknown) => (error instanceof CsiError ? error.details : ''),
        )
        must(!words.includes(canary), 'the value of a secret is in the answer of CreateVolume')
      }
    },
  },
]
