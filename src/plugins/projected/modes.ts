// Which mode do files get that name none? The API server fills it in; without it nobody may guess (CONF-5).

import { refuse } from '../shared/errors.ts'

export function defaultModeOf(mode: number | undefined): number {
  if (mode === undefined)
    throw refuse('NoDefaultMode', 'no defaultMode used, not even the default value for it', 'untried')
  return mode
}
