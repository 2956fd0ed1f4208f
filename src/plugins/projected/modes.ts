// Which mode do files get that name none? The API server fills it in; without it we must not guess (CONF-5).

import { refused } from '../../volume/effect.ts'

export function defaultModeOf(mode: number | undefined): number {
  if (mode === undefined)
    throw refused('NoDefaultMode', 'no defaultMode used, not even the default value for it', 'untried')
  return mode
}
